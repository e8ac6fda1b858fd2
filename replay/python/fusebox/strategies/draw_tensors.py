"""Strategies for dtypes, extents, shapes, tensors, and the inputs of a fusion. Boundary shapes and values come often. Examples shrink to
float32, small extents, contiguous strides, and small integers."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Sequence

from hypothesis import strategies as st

from fusebox import _fusebox
from fusebox.enums import DataType, torch_dtype
from fusebox.errors import FuseboxError

if TYPE_CHECKING:
    import torch

    from fusebox.definition import FusionDefinition

Draw = st.DrawFn

# Factors of splits, one more and one less, primes, and 0; the smallest first.
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 0)

TRACKS = ("integers", "normals", "positives", "specials", "subnormals")
"""Kinds of values, in this order: integers from −4 to 4; standard normal; from 1/8 to 2; ±0, infinities, NaN, largest and smallest
numbers, mixed with ordinary ones; subnormals, mixed with ordinary ones. Integer tensors take the integers, and for the last two kinds the
limits of their dtype."""

USUAL_TRACKS = ("integers", "normals", "positives")


@functools.cache
def table() -> dict[str, tuple[str, int, tuple[str, ...]]]:
    """The op table of the compiled module: name → (family, operands, words of the dtypes that it accepts)."""
    return {name: (family, count, tuple(words)) for name, family, count, words in _fusebox.op_table()}


def _has_torch_dtype(word: str) -> bool:
    try:
        torch_dtype(word)
        return True
    except FuseboxError:
        return False


@functools.cache
def dtypes_of(op: str | None) -> tuple[DataType, ...]:
    """The dtypes of an op (or all) that PyTorch has too, floats first."""
    words = [d.value for d in DataType if d not in (DataType.Index, DataType.Null)] if op is None else list(table()[op][2])
    usual = ["f32", "i64", "bool", "f64", "f16", "bf16", "i32", "c64"]
    words.sort(key=lambda w: usual.index(w) if w in usual else len(usual))
    return tuple(DataType(w) for w in words if _has_torch_dtype(w))


def dtypes(op: str | None = None) -> st.SearchStrategy[DataType]:
    """A DataType of which PyTorch can make tensors; with `op`, one that this operation accepts. E0201 for an unknown op."""
    if op is not None and op not in table():
        raise FuseboxError("E0201", "no operation that makes tensors has this name; fusebox.strategies.op_names lists them", op)
    return st.sampled_from(dtypes_of(op))


def extents(max_extent: int = 129) -> st.SearchStrategy[int]:
    """The number of elements along an axis, from 0, often beside a factor of splits."""
    return st.sampled_from([e for e in EXTENTS if e <= max_extent])


@st.composite
def shapes(draw: Draw, min_rank: int = 0, max_rank: int = 6, max_elements: int = 4096) -> tuple[int, ...]:
    """Extents of a tensor: mostly two axes and few elements, at most max_elements."""
    ranks = (1, 2, 3, 2, 2, 3, 0, 4, 5, 6, *range(7, max_rank + 1))
    rank = draw(st.sampled_from([r for r in ranks if min_rank <= r <= max_rank]))
    result: list[int] = []
    room = max_elements
    for _ in range(rank):
        # The room left for this axis. Tensors of many axes have short ones.
        most = min(room, 129 if rank <= 3 else 5)
        extent = draw(extents(max(most, 1)))
        room //= max(extent, 1)
        result.append(extent)
    return tuple(result)


# -- values


def _special_values(dtype: "torch.dtype", subnormals: bool) -> "torch.Tensor":
    import torch

    if dtype == torch.bool:
        return torch.tensor([True, False])
    if not dtype.is_floating_point and not dtype.is_complex:
        info = torch.iinfo(dtype)
        return torch.tensor([v for v in (0, 1, 2, 3, info.max, info.min, info.max - 1) if info.min <= v <= info.max], dtype=dtype)
    real = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)
    info = torch.finfo(real)
    ordinary = [1.0, -1.0, 0.5, -2.0, 3.0]
    if subnormals:
        values = [info.smallest_normal, *(info.smallest_normal * f for f in (0.5, -0.25, 0.75, -0.5)), -info.smallest_normal]
    else:
        values = [0.0, -0.0, math.inf, -math.inf, math.nan, info.max, info.min, info.smallest_normal, info.eps]
    return torch.tensor(ordinary + values, dtype=torch.float64).to(real)


def fill(dtype: DataType, count: int, track: str, seed: int) -> "torch.Tensor":
    """`count` elements in a row. Equal arguments give equal elements."""
    import torch

    to = torch_dtype(dtype.value)
    random = torch.Generator().manual_seed(seed)
    if dtype in (DataType.Float8_e8m0fnu, DataType.Float4_e2m1fn_x2):
        # Bytes of powers of two around 1, or of two numbers of 4 bits.
        low, high = (120, 135) if dtype is DataType.Float8_e8m0fnu else (0, 256)
        return torch.randint(low, high, (count,), generator=random, dtype=torch.uint8).view(to)
    if track in ("specials", "subnormals"):
        values = _special_values(to, track == "subnormals")
        picked = values[torch.randint(0, len(values), (count,), generator=random)] if values.element_size() != 1 or not values.is_floating_point() else (
            values.view(torch.uint8)[torch.randint(0, len(values), (count,), generator=random)].view(values.dtype)
        )
        if to.is_complex:
            return torch.complex(picked, picked[torch.randperm(count, generator=random)])
        return picked
    if to == torch.bool:
        return torch.randint(0, 2, (count,), generator=random) == 1
    whole = not to.is_floating_point and not to.is_complex
    if track == "integers" or whole:
        low = 0 if whole and torch.iinfo(to).min == 0 else -4
        return torch.randint(low, 5, (count,), generator=random).to(to)
    shape = (count, 2) if to.is_complex else (count,)
    if track == "normals":
        values = torch.randn(shape, generator=random, dtype=torch.float64)
    else:
        values = torch.rand(shape, generator=random, dtype=torch.float64) * 1.875 + 0.125
    return torch.view_as_complex(values).to(to) if to.is_complex else values.to(to)


def _place(storage: "torch.Tensor", shape: Sequence[int], strides: Sequence[int], offset: int) -> "torch.Tensor":
    return storage.as_strided(tuple(shape), tuple(strides), offset)


def span_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements of the storage from the first to the last that a tensor of these extents and strides reaches."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))


def plain_strides(shape: Sequence[int], order: Sequence[int] | None = None) -> list[int]:
    """The strides of a tensor without gaps whose axes lie in this order, outermost first; by default in their own order."""
    strides, step = [1] * len(shape), 1
    for axis in reversed(order if order is not None else range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return strides


@st.composite
def tensors(
    draw: Draw,
    dtype: DataType | None = None,
    shape: Sequence[int] | None = None,
    *,
    tracks: Sequence[str] = TRACKS,
    max_rank: int = 6,
    max_elements: int = 4096,
) -> "torch.Tensor":
    """A CPU tensor. Its strides, in elements, are contiguous, permuted, with gaps, or 0 where it is expanded; its storage may begin earlier.
    `shape` and `dtype` are drawn where none is given; `tracks`: kinds of values to draw from, of TRACKS."""
    kind = draw(dtypes()) if dtype is None else dtype
    extents_ = draw(shapes(max_rank=max_rank, max_elements=max_elements)) if shape is None else tuple(shape)
    layout = draw(st.sampled_from(("contiguous", "contiguous", "permuted", "gaps", "expanded")))
    order = draw(st.permutations(range(len(extents_)))) if layout == "permuted" else list(range(len(extents_)))
    strides, step = [1] * len(extents_), 1
    for axis in reversed(order):
        strides[axis] = 0 if layout == "expanded" and draw(st.booleans()) else step
        step = max(strides[axis] * max(extents_[axis], 1), step)
        if layout == "gaps":
            step = strides[axis] * max(extents_[axis], 1) + draw(st.integers(0, 3))
    offset = draw(st.integers(0, 5)) if layout == "gaps" else 0
    storage = fill(kind, span_of(extents_, strides) + offset, draw(st.sampled_from(tuple(tracks))), draw(st.integers(0, 999)))
    return _place(storage, extents_, strides, offset)


# -- inputs of a fusion


def _number(draw: Draw, dtype: DataType, special: bool) -> bool | int | float | complex:
    if dtype is DataType.Bool:
        return draw(st.booleans())
    to = torch_dtype(dtype.value)
    if not to.is_floating_point and not to.is_complex:
        unsigned = dtype.value.startswith("u")
        return draw(st.sampled_from((1, 2, 3, 0) if unsigned else (1, 2, 3, 0, -1)))
    values: list[float | complex] = [1.0, 2.0, 3.0, 0.0, -1.0, 0.5]
    if special:
        values += [-0.0, math.inf, math.nan]
    if to.is_complex:
        values += [1j, 0.5 - 2j]
    return draw(st.sampled_from(values))


def _strides(draw: Draw, info: _fusebox.InputInfo, shape: Sequence[int]) -> list[int]:
    """Strides that fit the input's order and contiguity."""
    strides, step = [1] * len(shape), 1
    order, marks = info.order, info.contiguity
    for k in reversed(range(len(order))):
        axis, extent = order[k], max(shape[order[k]], 1)
        if marks[k] == "none":
            strides[axis] = 0 if info.expanded[axis] else step
            continue
        if marks[k] == "false":
            # A contiguous axis outside of this one could not continue from a stride of 0.
            if (k == 0 or marks[k - 1] == "false") and not info.is_overwritten and draw(st.integers(0, 5)) == 5:
                strides[axis] = 0
                continue
            strides[axis] = step * draw(st.integers(1, 2)) + draw(st.integers(0, 3))
        else:
            strides[axis] = step
        step = strides[axis] * extent
    return strides


def _known_shapes(fusion: FusionDefinition, given: Sequence[Sequence[int]] | None) -> list[list[int]]:
    shapes_ = given if given is not None else getattr(fusion, "shapes", None)
    if shapes_ is not None:
        return [list(s) for s in shapes_]
    known = []
    for info in fusion.program.input_infos():
        if not info.is_tensor:
            continue
        if -1 in info.extents:
            raise FuseboxError("E0402", "an extent of this input is a symbol; give `shapes`, one for each tensor that is an input", f"%{info.name}")
        known.append(list(info.extents))
    return known


@st.composite
def inputs(
    draw: Draw, fusion: FusionDefinition, *, shapes: Sequence[Sequence[int]] | None = None, tracks: Sequence[str] = TRACKS
) -> list[Any]:
    """Inputs for `fusion.execute`: CPU tensors with strides that the definition allows, and Python numbers for scalars. An input that an
    operation uses directly as an index stays inside the axis that it indexes.

    `shapes` are the extents of the tensors, in order. Without them a drawn fusion takes those that it was drawn with, and any other fusion
    must have constant extents: E0402 otherwise."""
    known = iter(_known_shapes(fusion, shapes))
    infos = fusion.program.input_infos()
    all_shapes = _known_shapes(fusion, shapes)
    track = draw(st.sampled_from(tuple(tracks)))
    result: list[Any] = []
    for info in infos:
        dtype = DataType(info.dtype)
        if not info.is_tensor:
            result.append(_number(draw, dtype, track == "specials"))
            continue
        shape = next(known)
        strides = _strides(draw, info, shape)
        offset = draw(st.integers(1, 5)) if draw(st.integers(0, 5)) == 5 else 0
        count = span_of(shape, strides) + offset
        seed = draw(st.integers(0, 999))
        if info.indexes:
            limit = min(fusion.program.extents_of(value, all_shapes)[axis] for value, axis in info.indexes)
            storage = fill(DataType.Int, count, "integers", seed).abs().remainder(max(limit, 1)).to(torch_dtype(info.dtype))
        else:
            storage = fill(dtype, count, track, seed)
        result.append(_place(storage, shape, strides, offset))
    return result
