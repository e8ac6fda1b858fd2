"""Casts to narrow floats against PyTorch's own, at the ends of their numbers, between neighbours and at random."""

import pytest
import torch
from fusebox import FusionDefinition

NARROW = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


def numbers(narrow: torch.dtype) -> torch.Tensor:
    """Every number of the dtype, the doubles halfway to the next one and beside that, and numbers beyond the largest."""
    bits = torch.arange(2 ** (8 * narrow.itemsize), dtype=torch.int32).to(torch.int16 if narrow.itemsize == 2 else torch.uint8)
    held = bits.view(narrow).double()
    held = held[held.isfinite()].sort().values
    between = (held[1:] + held[:-1]) / 2
    largest = held.abs().max().item()
    beyond = [largest * f for f in (1.01, 1.03, 1.0625, 1.07, 1.5, 2.0, 100.0)] + [float("inf"), float("nan")]
    all_ = torch.cat([held, between, between * (1 + 2**-20), between * (1 - 2**-20), torch.tensor(beyond, dtype=torch.float64)])
    random = torch.randn(4096, generator=torch.Generator().manual_seed(7), dtype=torch.float64) * largest
    return torch.cat([all_, -all_, random])


def bits_of(t: torch.Tensor) -> torch.Tensor:
    return t.view(torch.int16 if t.dtype.itemsize == 2 else torch.uint8)


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("wide", [torch.float32, torch.float16, torch.bfloat16])
def test_casts_are_those_of_pytorch(narrow, wide):
    x = numbers(narrow).to(wide)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.cast(fd.from_pytorch(x), dtype=narrow))
    (ours,) = fd.execute([x])
    theirs = x.to(narrow)
    if narrow == torch.float8_e4m3fn and torch.tensor([1000.0]).to(narrow).float().isnan():
        # PyTorch before 2.13 gives NaN for what is beyond the largest number, where 2.13 and Fusebox give that number.
        is_beyond = (x.float().abs() >= 464) & ~x.isnan()
        assert torch.equal(ours.float()[is_beyond], 448 * x.float()[is_beyond].sign())
        ours, theirs = ours[~is_beyond], theirs[~is_beyond]
    is_nan = theirs.float().isnan()
    assert torch.equal(ours.float().isnan(), is_nan)
    assert torch.equal(bits_of(ours)[~is_nan], bits_of(theirs)[~is_nan])
