"""Arithmetic of sizes: what planning follows, and what stays an op of 64-bit integers."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from fusebox import DataType, FusionDefinition  # noqa: E402
from support import HAS_ATEN  # noqa: E402


def ops_of(define):
    """The lines of scalars that `define(o, n)` makes, n the size of a row, and what it gives for a row of 300."""
    with FusionDefinition() as fd:
        x = fd.from_pytorch(torch.zeros(2, 300))
        result = define(fd.ops, fd.ops.size(x, 1))
        fd.add_output(fd.ops.full([2], result, DataType.Int))
    lines = [line.split("=", 1)[1].strip() for line in str(fd).splitlines() if "=" in line and "size" not in line and "input" not in line]
    [values] = fd.execute([torch.zeros(2, 300)])
    return lines, values.tolist()


@pytest.mark.parametrize(
    "define, line, value",
    [
        (lambda o, n: o.div(n, 128), "floor_div %d0_1, 128 : index", 2),
        (lambda o, n: o.mod(n, 128), "floor_mod %d0_1, 128 : index", 44),
        (lambda o, n: o.mul(n, 2), "mul %d0_1, 2 : index", 600),
        (lambda o, n: o.add(3, n), "add 3, %d0_1 : index", 303),
        # A difference may be negative, and then `div` rounds to zero.
        (lambda o, n: o.div(o.sub(n, 303), 2), "div %", -1),
        (lambda o, n: o.mod(o.sub(n, 303), 2), "mod %", -1),
        (lambda o, n: o.div(n, -7), "div %d0_1, -7_i64 : i64", -42),
        # What a hash or a seed is mixed with wraps.
        (lambda o, n: o.mul(n, 2**62), "mul %d0_1, 4611686018427387904_i64 : i64", 0),
    ],
)
def test_ops_of_sizes(define, line, value):
    lines, values = ops_of(define)
    assert any(made.startswith(line) for made in lines), lines
    assert values == [value, value]


def test_a_quotient_is_an_extent():
    """Groups of 128 elements of a row, whose number is a quotient: one kernel behind views, in vectors."""
    with FusionDefinition() as fd:
        x = fd.from_pytorch(torch.zeros(8, 512, dtype=torch.bfloat16))
        o = fd.ops
        groups = o.div(o.size(x, 1), 128)
        y = o.reshape(o.cast(x, DataType.Float), [o.size(x, 0), groups, 128])
        scale = o.max(o.abs(y), [2])
        fd.add_output(o.truediv(y, o.broadcast(scale, [False, False, True])))
        fd.add_output(scale)
    for shape in [(8, 512), (3, 256), (1, 128)]:
        given = torch.randn(shape).to(torch.bfloat16)
        if HAS_ATEN:
            fd.validate([given])
        kernels = [d for d in fd.plan([given]) if d.scheduler != "view"]
        assert len(kernels) == 1 and kernels[0].choices["vector"] > 1, kernels
