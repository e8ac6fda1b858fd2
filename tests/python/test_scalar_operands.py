"""Ops on integers and bool, and comparisons, with every kind of operand: the results are torch's for the same operands, bit by bit.

ATen gets the tensors, numbers and tensors without axes themselves, so that nothing here shares this project's rules of promotion."""

import operator

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from fusebox import DataType, FuseboxError, FusionDefinition  # noqa: E402
from support import HAS_ATEN  # noqa: E402

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def boundary(dtype):
    """The numbers near which shifts, sums and comparisons change."""
    if dtype == torch.bool:
        return [False, True]
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        return [0.0, -0.0, 1.0, 0.1, -0.1, 1.0 / 3, 3.0, 2049.0, 257.0, info.max, info.min, info.tiny, float("inf"), float("-inf"), float("nan")]
    info = torch.iinfo(dtype)
    both = [0, 1, 2, 3, 7, 8, info.bits - 1, info.bits, info.bits + 1, info.max - 1, info.max]
    return both + ([-1, -2, -3, info.min + 1, info.min] if info.min < 0 else [info.max // 2, info.max // 2 + 1])


def tame(dtype):
    """Leaves out operands for which C++ may be undefined: a divisor of 0 or −1, a negative exponent."""
    return [n for n in boundary(dtype) if n > 0 or dtype == torch.bool]


def in_result_dtype(f):
    """For functions of torch that take only tensors: makes a tensor of a number, in the dtype that torch chooses."""

    def call(a, b):
        dtype = torch.result_type(a, b)
        return f(torch.as_tensor(a, dtype=dtype), torch.as_tensor(b, dtype=dtype))

    return call


def divided(a, b):
    """torch divides a number by a tensor as reciprocal times number, which rounds twice. Two tensors take one division."""
    return torch.true_divide(a if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=torch.result_type(a, b)), b)


def logical_right_shift(a, b):
    """torch has none: zeros come in from the left of the result's dtype. The table below has the boundary cases, by hand."""
    bits, most = torch.iinfo(a.dtype).bits, torch.iinfo(a.dtype).max
    pairs = zip(*(t.reshape(-1).tolist() for t in torch.broadcast_tensors(a, b)), strict=True)
    shifted = [(n & (1 << bits) - 1) >> k if 0 <= k < bits else 0 for n, k in pairs]
    return torch.tensor([n - (1 << bits) if n > most else n for n in shifted], dtype=a.dtype).reshape(torch.broadcast_shapes(a.shape, b.shape))


ANY_INTEGER = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "minimum": in_result_dtype(torch.minimum),
    "maximum": in_result_dtype(torch.maximum),
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "logical_right_shift": in_result_dtype(logical_right_shift),
}
TAME_INTEGER = {
    "div": in_result_dtype(lambda a, b: torch.div(a, b, rounding_mode="trunc")),
    "mod": in_result_dtype(torch.fmod),
    "fmod": in_result_dtype(torch.fmod),
    "remainder": operator.mod,
    "pow": operator.pow,
    "gcd": in_result_dtype(torch.gcd),
    "truediv": divided,
}
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
LOGIC = {name: in_result_dtype(getattr(torch, name)) for name in ("logical_and", "logical_or")}
BOOL = {name: ANY_INTEGER[name] for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "minimum", "maximum", "add", "mul")}


def same(out, want):
    return out.dtype == want.dtype and out.shape == want.shape and torch.equal(out, want)


def check(tensors, ops, other, values, validates):
    """Checks each op on (tensor, other) and (other, tensor). `other` makes an operand of the fusion; torch gets `values` for it."""
    with FusionDefinition() as fd:
        inputs, wanted = [], []
        for x in tensors:
            t = fd.from_pytorch(x)
            inputs.append(x)
            o = other(fd, inputs)
            for name, function in ops.items():
                op = getattr(fd.ops, name)
                fd.add_output(op(t, o))
                fd.add_output(op(o, t))
                wanted += [(name, "tensor first", x.dtype, function(x, values)), (name, "tensor second", x.dtype, function(values, x))]
    for out, (name, order, dtype, want) in zip(fd.execute(inputs), wanted, strict=True):
        assert same(out, want), (name, order, dtype, values, out, want)
    if validates and HAS_ATEN:
        fd.validate(inputs)


def beside_a_number(number):
    return (lambda fd, inputs: number), number


def beside_a_scalar(number, dtype):
    """A scalar input of the fusion; for torch, a tensor without axes."""

    def make(fd, inputs):
        inputs.append(number)
        return fd.define_scalar(dtype)

    return make, torch.tensor(number, dtype=dtype)


def beside_a_tensor(t):
    def make(fd, inputs):
        inputs.append(t)
        return fd.from_pytorch(t)

    return make, t


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_a_number_beside_integers(dtype):
    for number in boundary(dtype):
        check([torch.tensor(boundary(dtype), dtype=dtype)], ANY_INTEGER | COMPARISONS | LOGIC, *beside_a_number(number), number in (3, -1))
    for number in tame(dtype):
        check([torch.tensor(tame(dtype), dtype=dtype)], TAME_INTEGER, *beside_a_number(number), number == 3)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("scalar", [torch.bool, *INTEGERS], ids=str)
def test_a_scalar_beside_integers(dtype, scalar):
    ops = ANY_INTEGER | COMPARISONS | LOGIC
    if scalar == torch.bool:
        del ops["sub"]  # torch subtracts no bool
    for number in boundary(scalar):
        check([torch.tensor(boundary(dtype), dtype=dtype)], ops, *beside_a_scalar(number, scalar), number in (3, -1))
    for number in tame(scalar):
        if torch.tensor(int(number)).to(dtype) > 0:  # the value that the op gets
            check([torch.tensor(tame(dtype), dtype=dtype)], TAME_INTEGER, *beside_a_scalar(number, scalar), number == 3)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("other", [torch.bool, *INTEGERS], ids=str)
def test_a_tensor_beside_integers(dtype, other):
    def pairs(values, others):
        a, b = torch.tensor(values, dtype=dtype), torch.tensor(others, dtype=other)
        return a.repeat_interleave(len(b)), b.repeat(len(a))

    ops = ANY_INTEGER | COMPARISONS | LOGIC
    if other == torch.bool:
        del ops["sub"]
    x, y = pairs(boundary(dtype), boundary(other))
    check([x], ops, *beside_a_tensor(y), True)
    x, y = pairs(tame(dtype), [n for n in tame(other) if n])
    check([x], TAME_INTEGER, *beside_a_tensor(y), True)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("other", INTEGERS, ids=str)
def test_a_tensor_without_axes_beside_integers(dtype, other):
    for number in boundary(other):
        check([torch.tensor(boundary(dtype), dtype=dtype)], ANY_INTEGER | COMPARISONS | LOGIC, *beside_a_tensor(torch.tensor(number, dtype=other)), number in (3, -1))


@pytest.mark.parametrize("other", [False, True, 0, 1, 2, -1, 300], ids=str)
def test_bool_beside_numbers_and_scalars(other):
    x = torch.tensor([False, True])
    ops = BOOL | COMPARISONS | LOGIC
    check([x], ops, *beside_a_number(other), True)
    dtype = torch.bool if isinstance(other, bool) else torch.int16
    check([x], ops, *beside_a_scalar(other, dtype), True)
    check([x], ops, *beside_a_tensor(torch.tensor([other], dtype=dtype)), True)
    check([x], ops, *beside_a_tensor(torch.tensor(other, dtype=dtype)), True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_comparisons_of_floats(dtype):
    x = torch.tensor(boundary(dtype), dtype=dtype)
    numbers = [*boundary(dtype), 257, 2049, -1, True, 1e-30]
    for number in numbers:
        check([x], COMPARISONS | LOGIC, *beside_a_number(number), number == 0.1)
    for scalar in (torch.float64, torch.float32, dtype):
        for number in (0.1, 2049.0, 1.0 / 3, float("nan"), float("inf")):
            check([x], COMPARISONS | LOGIC, *beside_a_scalar(number, scalar), number == 0.1)
            check([x], COMPARISONS | LOGIC, *beside_a_tensor(torch.tensor(number, dtype=scalar)), number == 0.1)
    check([x], COMPARISONS | LOGIC, *beside_a_tensor(torch.tensor(boundary(dtype)[::-1], dtype=dtype)), True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_arithmetic_of_floats(dtype):
    """+ − × ÷ in the tensors' dtype, f16 and bf16 in f32: not in the double that a Python float is."""
    x = torch.tensor([0.0, 1.0, 3.0, 0.1, -7.7, 1000.3, 1.0 / 3], dtype=dtype)

    def in_float(f):
        # torch rounds the first operand of a narrow float op to its dtype but keeps the second in f32.
        if dtype.itemsize > 2:
            return f
        return lambda a, b: f(*(v.float() if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=torch.float32) for v in (a, b))).to(dtype)

    ops = {"add": in_float(operator.add), "sub": in_float(operator.sub), "mul": in_float(operator.mul), "truediv": in_float(divided)}
    for number in (0.1, 3, 1.0 / 3, -7.7, 1000.3):
        check([x + 1], ops, *beside_a_number(number), True)
        check([x + 1], ops, *beside_a_scalar(float(number), torch.float64), True)


@pytest.mark.parametrize("number", [1.5, -0.1, 2.0, 1 + 2j], ids=str)
def test_a_python_float_beside_integers_is_of_the_default_dtype(number):
    ops = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
    for dtype in (torch.bool, torch.int32, torch.int64):
        check([torch.tensor([1, 2, 1], dtype=dtype)], ops if dtype != torch.bool else {"add": operator.add, "mul": operator.mul}, *beside_a_number(number), True)


def test_a_complex_number_takes_the_width_of_floats():
    for dtype in (torch.float32, torch.float64, torch.complex64):
        x = torch.tensor([1, 2.5], dtype=dtype)
        ops = {"add": operator.add, "mul": operator.mul, "eq": operator.eq}
        check([x], ops, *beside_a_number(1 + 0.5j), True)
        check([x], ops, *beside_a_scalar(1 + 0.5j, torch.complex128), True)


# -- logical_right_shift, which torch lacks: results written by hand
TABLE = {
    torch.int8: [(-1, 0, -1), (-1, 1, 127), (-1, 3, 31), (-1, 7, 1), (-1, 8, 0), (-1, 127, 0), (-1, -1, 0), (-128, 1, 64), (-128, 7, 1), (127, 6, 1), (5, 1, 2)],
    torch.int16: [(-1, 0, -1), (-1, 3, 8191), (-1, 15, 1), (-1, 16, 0), (-1, -1, 0), (-32768, 1, 16384), (32767, 14, 1)],
    torch.int32: [(-1, 0, -1), (-1, 3, 536870911), (-1, 31, 1), (-1, 32, 0), (-1, 33, 0), (-1, -1, 0), (-2147483648, 1, 1073741824), (-2147483648, 31, 1)],
    torch.int64: [(-1, 0, -1), (-1, 3, 2305843009213693951), (-1, 63, 1), (-1, 64, 0), (-1, -1, 0), (-(2**63), 1, 2**62), (-(2**63), 63, 1)],
    torch.uint8: [(255, 0, 255), (255, 3, 31), (255, 7, 1), (255, 8, 0), (128, 1, 64)],
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_logical_right_shift_by_hand(dtype):
    for a, by, want in TABLE[dtype]:
        x, y = torch.tensor([a], dtype=dtype), torch.tensor([by], dtype=dtype)
        with FusionDefinition() as fd:
            t = fd.from_pytorch(x)
            fd.add_output(fd.ops.logical_right_shift(t, by))
            fd.add_output(fd.ops.logical_right_shift(t, fd.define_scalar(DataType.Int)))
            fd.add_output(fd.ops.logical_right_shift(t, fd.from_pytorch(y)))
            fd.add_output(fd.ops.logical_right_shift(a, fd.from_pytorch(y)))
        inputs = [x, by, y, y]
        for out in fd.execute(inputs):
            assert out.dtype == dtype and out.item() == want, (a, by, want, out)
        if HAS_ATEN:
            fd.validate(inputs)


# -- constants that the dtype cannot hold
@pytest.mark.parametrize(
    "dtype, number",
    [
        (torch.int8, 128),
        (torch.int8, -129),
        (torch.uint8, -1),
        (torch.uint8, 256),
        (torch.int16, 1 << 15),
        (torch.int32, 1 << 40),
        (torch.float32, 1e300),
        (torch.float16, 1e300),
    ],
)
def test_a_constant_that_does_not_fit_is_refused(dtype, number):
    with FusionDefinition() as fd:
        x = fd.define_tensor([4], dtype=dtype, name="x")
    for op in ("lt", "add", "mul", "minimum", "logical_and"):
        for operands in ((x, number), (number, x)):
            with pytest.raises(FuseboxError) as caught:
                getattr(fd.ops, op)(*operands)
            assert (caught.value.code, caught.value.place) == ("E0216", "%x")
    with pytest.raises(FuseboxError) as caught:
        fd.ops.full([2], number, dtype)
    assert caught.value.code == ("E0216")
    with pytest.raises(FuseboxError) as caught:
        fd.define_scalar(number, dtype)
    assert caught.value.code == "E0216"


def test_infinity_and_nan_are_held():
    x = torch.tensor([1.0, float("inf")], dtype=torch.float16)
    check([x], COMPARISONS, *beside_a_number(float("inf")), True)
    check([x], COMPARISONS, *beside_a_number(float("nan")), True)


@pytest.mark.parametrize(
    ("dtype", "held", "others"),
    [
        (torch.uint64, (0, 5, 2**63 - 1, 2**63, 2**64 - 1), (-1, 2**64)),
        (torch.int64, (-(2**63), -1, 2**63 - 1), (2**63, -(2**63) - 1)),
        (torch.int32, (-(2**31), 2**31 - 1), (2**31, -(2**31) - 1)),
        (torch.uint8, (0, 255), (-1, 256)),
    ],
)
def test_a_call_gives_integers_that_the_scalar_holds(dtype, held, others):
    with FusionDefinition() as fd:
        x, s = fd.define_tensor([2], dtype=dtype, name="x"), fd.define_scalar(None, dtype, name="s")
        fd.add_output(fd.ops.add(x, s))
    zeros = torch.zeros(2, dtype=dtype)
    for number in (*held, *reversed(held)):
        assert fd.execute([zeros, number])[0].tolist() == [number, number]
        for other in others:
            with pytest.raises(FuseboxError) as caught:
                fd.execute([zeros, other])
            assert caught.value.code in ("E0401", "E0104")


BOUNDARIES = [float("-inf"), -1.0, -0.0, 0.0, 0.25, 4.0, float("inf"), float("nan")]


# A GPU takes the root for every dtype; on a CPU torch leaves f16 to its general power, whose values at -inf and -0.0 are others.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0])
def test_powers_of_boundary_values_are_those_of_torch(dtype, exponent):
    x = torch.tensor(BOUNDARIES, dtype=dtype)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.pow(fd.from_pytorch(x), exponent))
    (out,) = fd.execute([x])
    want = torch.pow(x.float() if dtype == torch.float16 else x, exponent).to(dtype)
    assert torch.equal(out.isnan(), want.isnan())
    assert torch.equal(out.nan_to_num(), want.nan_to_num()) and torch.equal(out.signbit() | out.isnan(), want.signbit() | want.isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_power_by_a_tensor_of_exponents_is_the_general_one(dtype):
    x, halves = torch.tensor(BOUNDARIES, dtype=dtype), torch.full((len(BOUNDARIES),), 0.5, dtype=dtype)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.pow(fd.from_pytorch(x), fd.from_pytorch(halves)))
    (out,) = fd.execute([x, halves])
    assert torch.equal(out.nan_to_num(), torch.pow(x, halves).nan_to_num()) and out[0] == float("inf")


@pytest.mark.parametrize("other", INTEGERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_integers_beside_16_bit_floats_are_rounded_to_them(dtype, other):
    x, y = torch.tensor(boundary(other) * 2, dtype=other), torch.tensor([0.5, -2.0] * len(boundary(other)), dtype=dtype)
    near = torch.tensor([2049, 2048, 255, 257], dtype=torch.int64).to(other)
    ops = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "where": lambda a, b: torch.where(a > 0, a, b)} | COMPARISONS
    for a, b in (x, y), (near, near.to(dtype)):
        for name, function in ops.items():
            with FusionDefinition() as fd:
                s, t = fd.from_pytorch(a), fd.from_pytorch(b)
                fd.add_output(fd.ops.where(fd.ops.gt(s, 0), s, t) if name == "where" else getattr(fd.ops, name)(s, t))
            (out,) = fd.execute([a, b])
            want = function(a, b)
            assert out.dtype == want.dtype and torch.equal(out, want), (name, a, b, out, want)
            if HAS_ATEN:
                fd.validate([a, b])
