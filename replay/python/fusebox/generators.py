"""Seeds and offsets from torch's generators, for random tensors that were given none.

A random tensor takes one word of 32 bits for each element, from ceil(elements / 4) blocks of four words of Philox 4x32-10 (f64, and normal
numbers, take more words of the same blocks, from other streams). On a GPU the seed is that of its generator in torch. Its offset counts words, so
the first block is the offset divided by four, and each call advances it by four for each block. Torch's own ops draw from blocks before and after
these. torch.manual_seed and the generator's states therefore work as for torch's ops; the numbers are others than torch's. On the CPU each call
draws a seed from the default generator, and the first block is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from fusebox import _fusebox
from fusebox.errors import FuseboxError
from fusebox.fusion import Drawn, Fusion
from fusebox.torch_memory import listed

if TYPE_CHECKING:
    import torch


def blocks_of(elements: int) -> int:
    return (elements + 3) // 4


def signed(word: int) -> int:
    """The word of 64 bits as a number of dtype i64."""
    return (word + 2**63) % 2**64 - 2**63


def completed(program: _fusebox.Program, drawn: Drawn, inputs: Sequence[Any], device: torch.device) -> list[Any]:
    """The inputs with a seed and an offset at their places. Inputs that have these numbers already are returned as they are."""
    if len(inputs) != len(program.input_names()) - 2:
        return list(inputs)
    return placed(program, drawn, inputs, _draw(program, drawn, list(inputs), device))


def planned(fusion: Fusion, inputs: Sequence[Any]) -> list[Any]:
    """The inputs for a plan. It looks at no value, so no generator is asked for a seed."""
    given = listed(inputs)
    return given if fusion.drawn is None else placed(fusion.program, fusion.drawn, given, (0, 0))


def placed(program: _fusebox.Program, drawn: Drawn, inputs: Sequence[Any], words: tuple[int, int]) -> list[Any]:
    """The inputs with this seed and offset, unless they have such numbers already."""
    names = program.input_names()
    given = list(inputs)
    if len(given) == len(names) - 2:
        for i, number in sorted(zip((names.index(drawn.seed.name), names.index(drawn.offset.name)), words)):
            given.insert(i, number)
    return given


def _draw(program: _fusebox.Program, drawn: Drawn, inputs: list[Any], device: torch.device) -> tuple[int, int]:
    import torch

    if device.type != "cuda":
        try:
            return int(torch.empty((), dtype=torch.int64, device="cpu").random_().item()), 0
        except RuntimeError:  # FakeTensorMode, or a transform of torch.func
            message = "the seed of torch's generator has no memory: it is fake, or a transform such as torch.func.vmap made it"
            raise FuseboxError("E0401", message + "; call the fusion outside of that, or give rng_seed and rng_offset", "execute") from None
    if torch.cuda.is_current_stream_capturing():
        raise FuseboxError("E0212", "a graph that is captured would repeat one seed and offset; give rng_seed and rng_offset as inputs", "execute")
    shapes = [list(t.shape) for t in inputs if isinstance(t, torch.Tensor)]
    try:
        blocks = sum(blocks_of(math.prod(program.extents_of(t, shapes))) for t in drawn.tensors)
    except FuseboxError as e:
        if e.code != "E0214":
            raise
        raise FuseboxError("E0212", "the extents of a random tensor follow from a number, so the generator cannot be advanced; give rng_seed and rng_offset", e.place) from e
    generator = torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    offset = generator.get_offset()
    generator.set_offset(offset + 4 * blocks)
    return signed(generator.initial_seed()), offset // 4
