"""Random forms of arguments as Python callers write them. If torch accepts them, the results agree; if not, the refusal has a code."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from fusebox import DataType, FuseboxError, FusionDefinition  # noqa: E402

EXAMPLES = settings(deadline=None, max_examples=150, derandomize=True)
REFUSED = object()

extents = st.lists(st.integers(0, 4), max_size=4)


def numbers(shape, dtype=torch.float32):
    """Small integers, all different along each axis; any order of adding them is exact."""
    return (torch.arange(math.prod(shape)) % 23 - 11).reshape(shape).to(dtype)


def torch_gives(f):
    try:
        return f()
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return REFUSED


def fusebox_gives(tensors, define):
    try:
        with FusionDefinition() as fd:
            result = define(fd, *[fd.from_pytorch(t, static_sizes=True) for t in tensors])
            for r in result if isinstance(result, tuple) else (result,):
                fd.add_output(r)
        outs = fd.execute(tensors)
        return tuple(outs) if isinstance(result, tuple) else outs[0]
    except FuseboxError as e:
        assert e.code not in ("E0900",), e
        return REFUSED


def agree(tensors, define, expected, refusals=(), extensions=()):
    """`refusals`: whether Fusebox may refuse what torch accepts; `extensions`: whether Fusebox may accept what torch refuses."""
    want, got = torch_gives(lambda: expected(*tensors)), fusebox_gives(tensors, define)
    if (got is REFUSED and any(refusals)) or (want is REFUSED and any(extensions)):
        return
    assert (want is REFUSED) == (got is REFUSED), (want, got)
    if want is REFUSED:
        return
    for w, g in zip(want, got, strict=True) if isinstance(want, tuple) else ((want, got),):
        assert g.dtype == w.dtype and g.shape == w.shape, (w, g)
        torch.testing.assert_close(g, w, rtol=1e-5, atol=1e-5, equal_nan=True)


@st.composite
def shape_and_axes(draw, beyond=True):
    """A shape, and axes in any form: an integer, a list, a tuple or None. Sometimes an axis does not exist."""
    shape = draw(extents)
    rank = len(shape)
    margin = 1 if beyond and draw(st.integers(0, 9)) == 0 else 0
    axis = st.integers(-rank - margin, max(rank - 1, 0) + margin) if rank else st.integers(-1 - margin, margin)
    form = draw(st.sampled_from(["integer", "list", "tuple", "empty list", "empty tuple"]))
    if form == "integer":
        return shape, draw(axis)
    if form.startswith("empty"):
        return shape, [] if form == "empty list" else ()
    listed = draw(st.lists(axis, min_size=1, max_size=3))
    return shape, listed if form == "list" else tuple(listed)


REDUCTIONS = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}


@given(st.sampled_from(sorted(REDUCTIONS)), shape_and_axes(), st.booleans(), st.sampled_from([torch.float32, torch.int32, torch.bool]))
@EXAMPLES
def test_reductions(op, case, keepdim, dtype):
    shape, axes = case
    x = numbers(shape, dtype)
    agree(
        [x],
        lambda fd, t: getattr(fd.ops, op)(t, axes, keepdim=keepdim),
        lambda t: REDUCTIONS[op](t, axes, keepdim=keepdim),
        refusals=(len(shape) == 0 and axes not in ([], ()),),
        extensions=(0 in shape and op != "sum",),  # the maximum of no elements is -inf
    )


@given(st.sampled_from(["sum", "prod", "max", "min", "var", "var_mean"]), extents, st.booleans())
@EXAMPLES
def test_reductions_of_all_axes(op, shape, named):
    x = numbers(shape) / 4
    functions = {"sum": torch.sum, "prod": torch.prod, "max": torch.max, "min": torch.min, "var": torch.var, "var_mean": torch.var_mean}
    arguments = [None] if named else []
    agree([x], lambda fd, t: getattr(fd.ops, op)(t, *arguments), lambda t: functions[op](t), extensions=(0 in shape and op in ("max", "min"),))


@given(shape_and_axes(), st.integers(0, 2), st.booleans())
@EXAMPLES
def test_var(case, correction, keepdim):
    shape, axes = case
    x = numbers(shape)
    for op, function in (("var", torch.var), ("var_mean", torch.var_mean)):
        agree(
            [x],
            lambda fd, t: getattr(fd.ops, op)(t, axes, correction=correction, keepdim=keepdim),  # noqa: B023
            lambda t: function(t, axes, correction=correction, keepdim=keepdim),  # noqa: B023
            refusals=(len(shape) == 0,),
        )


@given(shape_and_axes(), st.data())
@EXAMPLES
def test_squeeze(case, data):
    shape, axes = case
    rank = len(shape)
    for axis in [axes] if isinstance(axes, int) else axes:
        if -rank <= axis < rank and data.draw(st.integers(0, 4)):
            shape[axis] = 1
    named = [axes] if isinstance(axes, int) else list(axes)
    keeps = any(-rank <= a < rank and shape[a] != 1 for a in named)  # torch keeps such an axis, Fusebox refuses it
    agree([numbers(shape)], lambda fd, t: fd.ops.squeeze(t, axes), lambda t: torch.squeeze(t, axes), refusals=(keeps, rank == 0 and named))


@given(extents, st.data())
@EXAMPLES
def test_permute(shape, data):
    rank = len(shape)
    dims = data.draw(st.permutations(range(rank)))
    dims = [d - rank if data.draw(st.booleans()) else d for d in dims]
    if dims and data.draw(st.integers(0, 9)) == 0:
        dims = data.draw(st.sampled_from([[], dims[:-1], [*dims, 0], [dims[0]] * rank]))
    form = data.draw(st.sampled_from([list, tuple]))
    agree([numbers(shape)], lambda fd, t: fd.ops.permute(t, form(dims)), lambda t: t.permute(form(dims)))


@given(extents, st.data())
@EXAMPLES
def test_expand(shape, data):
    wanted = [data.draw(st.sampled_from([n, -1, n + 1] if n != 1 else [1, -1, 3, 0])) for n in shape]
    wanted = data.draw(st.lists(st.integers(0, 3), max_size=2)) + wanted
    if data.draw(st.integers(0, 9)) == 0:
        wanted = data.draw(st.sampled_from([[], wanted[1:]]))
    form = data.draw(st.sampled_from([list, tuple]))
    agree([numbers(shape)], lambda fd, t: fd.ops.expand(t, form(wanted)), lambda t: t.expand(form(wanted)))


@given(extents, st.data())
@EXAMPLES
def test_reshape(shape, data):
    wanted = data.draw(st.permutations(shape))
    if len(wanted) > 1 and data.draw(st.booleans()):
        wanted = [wanted[0] * wanted[1], *wanted[2:]]
    if wanted and data.draw(st.booleans()):
        wanted[data.draw(st.integers(0, len(wanted) - 1))] = -1
    if data.draw(st.integers(0, 5)) == 0:
        wanted = data.draw(st.sampled_from([[], [-1], [*wanted, 1]]))
    form = data.draw(st.sampled_from([list, tuple]))
    agree([numbers(shape)], lambda fd, t: fd.ops.reshape(t, form(wanted)), lambda t: t.reshape(form(wanted)))


@given(extents, st.data())
@EXAMPLES
def test_slice(shape, data):
    """Bounds as numbers and as scalars of the fusion, from two before the start to two after the end, and open ones."""
    bounds = [(data.draw(st.integers(-n - 2, n + 2)), data.draw(st.sampled_from([*range(-n - 2, n + 3), 2**63 - 1]))) for n in shape]
    as_scalar = [(data.draw(st.booleans()), data.draw(st.booleans())) for _ in shape]
    scalars = [b for pair, marks in zip(bounds, as_scalar, strict=True) for b, mark in zip(pair, marks, strict=True) if mark]
    x = numbers(shape)
    strides = data.draw(st.sampled_from([None, [1] * len(shape)]))

    def define(fd, t):
        given = [[fd.define_scalar(torch.int64) if mark else b for b, mark in zip(pair, marks, strict=True)] for pair, marks in zip(bounds, as_scalar, strict=True)]
        return fd.ops.slice(t, [s for s, _ in given], [e for _, e in given], strides)

    with FusionDefinition() as fd:
        fd.add_output(define(fd, fd.from_pytorch(x, static_sizes=data.draw(st.booleans()))))
    (out,) = fd.execute([x, *scalars])
    want = x
    for axis, (start, end) in enumerate(bounds):
        want = torch.ops.aten.slice(want, axis, start, end)
    assert out.shape == want.shape and torch.equal(out, want), (bounds, as_scalar)


@given(st.integers(0, 6), st.integers(0, 4), st.integers(0, 4), st.booleans())
@EXAMPLES
def test_slice_by_sums_of_sizes(n, a, b, starts):
    """Bounds computed from sizes of other tensors clamp like numbers."""
    x, y, z = numbers([n]), numbers([a]), numbers([b])
    with FusionDefinition() as fd:
        t, u, v = (fd.from_pytorch(w, static_sizes=False) for w in (x, y, z))
        stop = fd.ops.add(fd.ops.size(u, 0), fd.ops.size(v, 0))
        start = fd.ops.mul(fd.ops.size(v, 0), 2) if starts else 0
        for sliced in (t, fd.ops.cat([t, u], 0)):
            fd.add_output(fd.ops.slice(sliced, [start], [stop]))
    outs = fd.execute([x, y, z])
    for out, given_to in zip(outs, (x, torch.cat([x, y])), strict=True):
        want = given_to[2 * b if starts else 0 : a + b]
        assert out.shape == want.shape and torch.equal(out, want), (n, a, b, starts)


@given(st.integers(1, 3), st.data())
@EXAMPLES
def test_slice_lists_of_unequal_length(rank, data):
    lengths = [data.draw(st.integers(0, 3)) for _ in range(3)]
    with FusionDefinition() as fd:
        t = fd.define_tensor([4] * rank, name="t")
    lists = [[0] * lengths[0], [1] * lengths[1], [1] * lengths[2]]
    if lengths == [rank] * 3:
        fd.ops.slice(t, *lists)
        return
    with pytest.raises(FuseboxError) as caught:
        fd.ops.slice(t, *lists)
    assert (caught.value.code, caught.value.place) == ("E0205", "%t")


@given(extents, st.data(), st.sampled_from([None, 2, 1.5, True, 3 + 0j, 3 + 2j]))
@EXAMPLES
def test_pad(shape, data, value):
    count = data.draw(st.integers(0, len(shape)))
    widths = [data.draw(st.integers(-1, 3)) for _ in range(2 * count)]
    if data.draw(st.integers(0, 9)) == 0:
        widths = widths + [1]
    dtype = data.draw(st.sampled_from([torch.float32, torch.complex64, torch.int32]))
    # Fusebox refuses a fractional value for integers, which torch truncates, and a cut of more than there is.
    cuts = any(shape[len(shape) - 1 - i // 2] + sum(widths[i - i % 2 : i - i % 2 + 2]) < 0 for i in range(2 * count))
    agree(
        [numbers(shape, dtype)],
        lambda fd, t: fd.ops.pad(t, widths, value),
        lambda t: torch.constant_pad_nd(t, widths, 0 if value is None else value),
        # torch looks at the value only if it pads.
        refusals=(isinstance(value, (float, complex)) and dtype == torch.int32, cuts, value == 3 + 2j),
        extensions=(0 in shape,),  # one width may cut what another adds
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.data())
@EXAMPLES
def test_cat_select_and_triu(shape, data):
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    form = data.draw(st.sampled_from([list, tuple]))
    x, y = numbers(shape), numbers(shape) + 1
    nothing = shape == [0]  # torch joins it to anything
    agree([x, y], lambda fd, s, t: fd.ops.cat(form([s, t]), axis), lambda s, t: torch.cat(form([s, t]), axis), refusals=(nothing,))
    agree([x], lambda fd, t: fd.ops.cat(form([t])), lambda t: torch.cat(form([t])))
    agree([x], lambda fd, t: fd.ops.cat(form([])), lambda t: torch.cat(form([])))
    index = data.draw(st.integers(-4, 3))
    empty = 0 in shape  # without selected elements, no index is wrong
    agree([x], lambda fd, t: fd.ops.select(t, index, axis), lambda t: torch.select(t, axis, index), extensions=(empty,))
    diagonal = data.draw(st.integers(-4, 4))
    agree([x], lambda fd, t: fd.ops.triu(t, diagonal), lambda t: torch.triu(t, diagonal))


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from([0, 7, True, 2.5, 1 + 2j, -1, 300]), st.sampled_from([torch.float32, torch.int8, torch.bool, torch.uint8, torch.complex64]))
@EXAMPLES
def test_full(shape, value, dtype):
    # torch turns −1 into 255 here; Fusebox has no negative u8.
    agree([], lambda fd: fd.ops.full(shape, value, dtype), lambda: torch.full(shape, value, dtype=dtype), refusals=(value == -1 and dtype == torch.uint8, value == 1 + 2j))


@given(st.integers(0, 9), st.integers(-3, 3), st.integers(-3, 3), st.sampled_from([torch.int64, torch.int32, torch.float32]), st.booleans())
@EXAMPLES
def test_iota(length, start, step, dtype, as_scalars):
    with FusionDefinition() as fd:
        try:
            given = [fd.define_scalar(dtype), fd.define_scalar(dtype)] if as_scalars else [start, step]
            fd.add_output(fd.ops.iota(length, *given, dtype=dtype))
            values = [start, step] if dtype != torch.float32 else [float(start), float(step)]
            (out,) = fd.execute(values if as_scalars else [])
        except FuseboxError as e:
            assert step == 0 and e.code == ("E0401" if as_scalars else "E0207")
            return
    assert step != 0
    assert torch.equal(out, torch.arange(start, start + length * step, step, dtype=dtype))


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_iota_counts_from_and_by_finite_numbers(bad):
    for arguments in ((bad, 1.0), (0.0, bad)):
        with pytest.raises(FuseboxError) as caught:
            FusionDefinition().ops.iota(4, *arguments, dtype=torch.float32)
        assert caught.value.code == "E0207"
        with FusionDefinition() as fd:
            fd.add_output(fd.ops.iota(4, fd.define_scalar(torch.float32, name="a"), fd.define_scalar(torch.float32, name="b"), dtype=torch.float32))
        with pytest.raises(FuseboxError) as caught:
            fd.execute(list(arguments))
        assert caught.value.code == "E0401"


@given(shape_and_axes(beyond=False))
@EXAMPLES
def test_an_integer_is_an_integer(case):
    """A bool is no axis, although Python counts it as a number. NumPy's integers are axes."""
    numpy = pytest.importorskip("numpy")
    shape, axes = case
    with FusionDefinition() as fd:
        t = fd.from_pytorch(numbers([1, *shape]), static_sizes=True)
        for refused in (True, [True], 1.0, [0.0]):
            with pytest.raises(FuseboxError) as caught:
                fd.ops.squeeze(t, refused)
            assert caught.value.code == "E0207"
        assert fd.ops.squeeze(t, numpy.int64(0)).ndim == len(shape)
        assert fd.ops.sum(t, [numpy.int32(0)]).ndim == len(shape)


def test_numbers_of_numpy_are_numbers():
    with FusionDefinition() as fd:
        x, s = fd.define_tensor([2, 3], name="x"), fd.define_scalar(DataType.Int, name="s")
        y = fd.ops.mul(fd.ops.reshape(x, [np.int64(3), np.int32(2)]), np.float32(2))
        fd.add_output(fd.ops.add(fd.ops.slice(y, [np.int64(0), 0], [2, 2]), s))
        y.split(np.int64(0), np.int64(2))
    assert fd.execute([torch.ones(2, 3), np.int64(4)])[0].tolist() == [[6.0, 6.0], [6.0, 6.0]]


@pytest.mark.parametrize("number", (2**63, -(2**63) - 1, 2**70))
def test_integers_beyond_64_bits_are_refused(number):
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 2], name="x")
    for call in (lambda: fd.ops.sum(x, number), lambda: fd.ops.triu(x, number), lambda: fd.ops.permute(x, [number, 0]), lambda: fd.ops.var(x, [0], correction=number)):
        with pytest.raises(FuseboxError) as caught:
            call()
        assert caught.value.code == "E0104"


def test_a_named_operand_that_is_missing_or_given_twice_is_refused():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2], name="x")
    for call in (lambda: fd.ops.addcmul(x, tensor1=x, value=3.0), lambda: fd.ops.add(x, x, arg1=x)):
        with pytest.raises(FuseboxError) as caught:
            call()
        assert caught.value.code == "E0202"


def test_the_variance_of_nothing_is_nan_whatever_the_correction():
    for correction in (-1, 0, 1):
        with FusionDefinition() as fd:
            x = fd.define_tensor([-1, -1], name="x")
            fd.add_output(fd.ops.var(x, [1], correction=correction))
        empty, full = torch.ones(2, 0), torch.rand(2, 3)
        assert fd.execute([empty])[0].isnan().all()
        assert torch.allclose(fd.execute([full])[0], torch.var(full, 1, correction=correction))


def test_the_cpu_has_one_device():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([2], name="x")))
    assert fd.execute([torch.ones(2)], device="cpu:0")[0].tolist() == [-1.0, -1.0]
