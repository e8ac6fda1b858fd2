"""Operands that a fusion takes: values of its own, integers as extents and bounds, and constants of u64."""

import pytest
import torch

from definitions import code_of, error_of
from fusebox import DataType, FusionDefinition


def test_a_tensor_of_another_fusion_is_refused():
    first, second = FusionDefinition(), FusionDefinition()
    a, b = first.define_tensor([3]), second.define_tensor([3])  # both are %t0
    s = first.define_scalar(DataType.Int)
    assert code_of(lambda: second.ops.add(b, a)) == "E0215"
    assert code_of(lambda: second.ops.sum(a)) == "E0215"
    assert code_of(lambda: second.ops.cat([b, a])) == "E0215"
    assert code_of(lambda: second.ops.full([s], 1, DataType.Float)) == "E0215"
    assert code_of(lambda: second.add_output(a)) == "E0215"
    assert code_of(lambda: second.add_output(second.ops.add(b, 1), a)) == "E0215"
    assert isinstance(error_of(lambda: second.ops.exp(a)), TypeError)


def test_a_copy_takes_the_values_that_it_copied():
    fd = FusionDefinition()
    x = fd.define_tensor([3])
    copy = fd.copy()
    later = fd.ops.exp(x)
    of_copy = copy.ops.sin(x)
    assert later.name == of_copy.name
    assert code_of(lambda: copy.add_output(later)) == "E0215"
    assert code_of(lambda: fd.add_output(of_copy)) == "E0215"
    again = copy.copy()
    again.add_output(again.ops.add(x, of_copy))
    given = torch.randn(3)
    torch.testing.assert_close(again.execute([given])[0], given + given.sin())


def test_large_numbers_of_u64():
    fd = FusionDefinition()
    x = fd.define_tensor([2], dtype=DataType.UInt64)
    fd.add_output(fd.ops.full([2], 2**64 - 1, torch.uint64))
    fd.add_output(fd.ops.pad(x, [1, 0], 2**63))
    full, padded = fd.execute([torch.tensor([1, 2], dtype=torch.uint64)])
    assert full.tolist() == [2**64 - 1] * 2 and padded.tolist() == [2**63, 1, 2]
    assert code_of(lambda: FusionDefinition().ops.full([2], 2**64, torch.uint64)) == "E0104"
    assert code_of(lambda: FusionDefinition().ops.full([2], 2**63, torch.int64)) == "E0104"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.complex64, torch.bool])
def test_an_extent_is_an_integer(dtype):
    fd = FusionDefinition()
    x, s = fd.define_tensor([-1]), fd.define_scalar(dtype)
    assert code_of(lambda: fd.ops.full([s], 1, torch.float32)) == "E0204"
    assert code_of(lambda: fd.ops.slice(x, [s], [3])) == "E0204"
    assert code_of(lambda: fd.ops.select(x, s, 0)) == "E0204"
    assert code_of(lambda: fd.ops.iota(s)) == "E0204"


def test_a_bound_of_u64_beyond_i64_is_the_end_of_the_axis():
    fd = FusionDefinition()
    x, n = fd.define_tensor([-1]), fd.define_scalar(torch.uint64)
    fd.add_output(fd.ops.slice(x, [0], [n]))
    x = torch.arange(6.0)
    for stop in (0, 2, 6, 7, 2**63 - 1, 2**63, 2**64 - 1):
        assert torch.equal(fd.execute([x, stop])[0], x[:stop])
    fd = FusionDefinition()
    fd.add_output(fd.ops.slice(fd.define_tensor([-1]), [fd.define_scalar(torch.uint64)], [5]))
    for start in (0, 2, 2**64 - 1):
        assert torch.equal(fd.execute([x, start])[0], x[start:5])


END = 2**62


def sliced(fd, t, axis, start, stop):
    rank = range(len(t.shape))
    return fd.ops.slice(t, [start if i == axis else 0 for i in rank], [stop if i == axis else END for i in rank])


@pytest.mark.parametrize("start, stop", [(0, 1), (3, 4), (-1, END), (-2, -1)])
def test_a_slice_of_one_place_of_a_symbolic_axis_stretches(start, stop):
    x, y, z = torch.randn(5, 6), torch.randn(5, 6), torch.randn(2, 5, 6)
    column, row = x[:, start:stop], x[start:stop]
    fd = FusionDefinition()
    with fd:
        a, b, c = (fd.define_tensor([-1] * rank) for rank in (2, 2, 3))
        at = sliced(fd, a, 1, start, stop)
        results = [
            (fd.ops.add(fd.ops.neg(at), b), -column + y),
            (fd.ops.sub(a, at), x - column),
            (fd.ops.where(fd.ops.gt(c, at), c, at), torch.where(z > column, z, column)),
            (fd.ops.mul(sliced(fd, a, 0, start, stop), at), row * column),
            (fd.ops.mul(at, sliced(fd, b, 1, 0, 1)), column * y[:, :1]),
        ]
        for t, _ in results:
            fd.add_output(t)
    for out, (_, want) in zip(fd.execute([x, y, z]), results, strict=True):
        assert torch.equal(out, want)
    assert code_of(lambda: fd.execute([x[:, :0], y[:, :0], z[:, :, :0]])) == "E0407"


def test_longer_slices_of_symbolic_axes_keep_their_extent():
    x, y = torch.randn(5, 6), torch.randn(5, 2)
    fd = FusionDefinition()
    with fd:
        a, b = fd.define_tensor([-1, -1]), fd.define_tensor([-1, -1])
        fd.add_output(fd.ops.add(sliced(fd, a, 1, 1, 3), b))
    assert torch.equal(fd.execute([x, y])[0], x[:, 1:3] + y)
    assert torch.equal(fd.execute([x[:, :1].contiguous(), y[:, :0].contiguous()])[0], x[:, :0])
    assert "squeeze" in str(error_of(lambda: fd.execute([x[:, :2].contiguous(), y])))
