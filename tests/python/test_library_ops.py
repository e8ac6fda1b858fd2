"""Ops that ATen alone computes: fd.ops gives what torch gives, says what torch says of shapes, and refuses what torch refuses, with a code."""

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from fusebox import DataType, FuseboxError, FusionDefinition, ParallelType  # noqa: E402

F = torch.nn.functional


def ran(build, inputs):
    """The outputs of the fusion that `build` makes of the inputs; `build` gets fd.ops and the tensors."""
    fd = FusionDefinition("library")
    made = build(fd.ops, *[fd.from_pytorch(t) for t in inputs])
    for tensor in made if isinstance(made, tuple) else (made,):
        fd.add_output(tensor)
    return fd.execute(list(inputs))


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def close(ours, theirs, dtype=torch.float32):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    digits = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(dtype, 2e-5)
    torch.testing.assert_close(ours, theirs, rtol=digits, atol=digits, equal_nan=True)


def refused(action):
    with pytest.raises(FuseboxError) as caught:
        action()
    return caught.value


FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "a,b",
    [((5, 7), (7, 3)), ((9,), (9,)), ((4,), (3, 4, 2)), ((2, 3, 4), (4,)), ((2, 1, 3, 5), (4, 5, 2)), ((3, 0), (0, 4)), ((2, 3, 4), (2, 4, 5))],
)
def test_matmul(dtype, a, b):
    x, y = normal(*a, dtype=dtype), normal(*b, dtype=dtype, seed=1)
    close(ran(lambda ops, x, y: ops.matmul(x, y), [x, y])[0], torch.matmul(x, y), dtype)


def test_matmul_of_complex():
    x, y = torch.complex(normal(3, 4), normal(3, 4, seed=1)), torch.complex(normal(4, 5, seed=2), normal(4, 5, seed=3))
    close(ran(lambda ops, x, y: ops.matmul(x, y), [x, y])[0], x @ y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_linear(dtype):
    x, w, b = normal(2, 5, 7, dtype=dtype), normal(3, 7, dtype=dtype, seed=1), normal(3, dtype=dtype, seed=2)
    close(ran(lambda ops, x, w, b: ops.linear(x, w, b), [x, w, b])[0], F.linear(x, w, b), dtype)
    close(ran(lambda ops, x, w: ops.linear(x, w), [x, w])[0], F.linear(x, w), dtype)
    close(ran(lambda ops, x, w: ops.linear(x, w), [x, w[0]])[0], F.linear(x, w[0]), dtype)


def test_grouped_mm():
    ends = torch.tensor([2, 2, 5], dtype=torch.int32)
    a, b = normal(6, 4), normal(3, 4, 2, seed=1)
    expected = torch.cat([a[:2] @ b[0], a[2:5] @ b[2], torch.zeros(1, 2)])
    close(ran(lambda ops, a, b, e: ops.grouped_mm(a, b, e), [a, b, ends])[0], expected)
    a, b = normal(3, 2, 4), normal(4, 5, seed=1)
    expected = torch.cat([a[0] @ b[:, :2], a[2] @ b[:, 2:]], 1)
    close(ran(lambda ops, a, b, e: ops.grouped_mm(a, b, e), [a, b, ends])[0], expected)
    a, b = normal(2, 5), normal(5, 3, seed=1)
    expected = torch.stack([a[:, :2] @ b[:2], torch.zeros(2, 3), a[:, 2:] @ b[2:]])
    close(ran(lambda ops, a, b, e: ops.grouped_mm(a, b, e), [a, b, ends])[0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.complex64])
def test_cumsum_and_cumprod(dtype):
    x = normal(4, 9).to(dtype) if dtype != torch.bool else normal(4, 9) > 0
    for dim in (0, -1):
        summed, multiplied = ran(lambda ops, x: (ops.cumsum(x, dim), ops.cumprod(x, dim)), [x])
        close(summed, torch.cumsum(x.float() if dtype == torch.bfloat16 else x, dim).to(summed.dtype), dtype)
        close(multiplied, torch.cumprod(x.float() if dtype == torch.bfloat16 else x, dim).to(multiplied.dtype), dtype)
    assert ran(lambda ops, x: ops.cumsum(x, 0, DataType.Double), [torch.ones(3)])[0].dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_cummin_and_cummax(dtype):
    x = (normal(5, 8) * 3).abs().round().to(dtype)
    for dim in (0, 1):
        outs = ran(lambda ops, x: (*ops.cummin(x, dim), *ops.cummax(x, dim)), [x])
        for ours, theirs in zip(outs, (*torch.cummin(x, dim), *torch.cummax(x, dim))):
            assert torch.equal(ours, theirs) and ours.dtype == theirs.dtype
    x = torch.tensor([1.0, float("nan"), 2.0, float("nan")])
    values, indices = ran(lambda ops, x: ops.cummax(x, 0), [x])
    assert torch.equal(values.nan_to_num(9), torch.cummax(x, 0)[0].nan_to_num(9)) and torch.equal(indices, torch.cummax(x, 0)[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool])
def test_argsort_and_topk(dtype):
    x = (normal(4, 11) * 2).round().to(dtype) if dtype != torch.bool else normal(4, 11) > 0
    for dim in (0, 1):
        for descending in (False, True):
            places = ran(lambda ops, x: ops.argsort(x, dim, descending), [x])[0]
            assert torch.equal(places, torch.argsort(x, dim=dim, descending=descending, stable=True))
            values, indices = ran(lambda ops, x: ops.topk(x, 3, dim, descending), [x])
            expected, order = torch.sort(x, dim=dim, descending=descending, stable=True)
            assert torch.equal(values, expected.narrow(dim, 0, 3)) and torch.equal(indices, order.narrow(dim, 0, 3))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention(dtype, causal, scale):
    q, k, v = normal(2, 3, 5, 4, dtype=dtype), normal(2, 3, 7, 4, dtype=dtype, seed=1), normal(2, 3, 7, 6, dtype=dtype, seed=2)
    grad = normal(2, 3, 5, 6, dtype=dtype, seed=3)
    wide = [t.double().requires_grad_() for t in (q, k, v)]
    expected = F.scaled_dot_product_attention(*wide, is_causal=causal, scale=scale)
    output, lse = ran(lambda ops, q, k, v: ops.sdpfa_fwd(q, k, v, 0.0, causal, scale), [q, k, v])
    close(output, expected.detach().to(dtype), dtype)
    scores = (q.double() @ k.double().transpose(-1, -2)) * (0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(5, 7, dtype=torch.bool).triu(1), float("-inf"))
    sums = torch.float64 if dtype == torch.float64 else torch.float32
    close(lse, scores.logsumexp(-1).to(sums), dtype)
    expected.backward(grad.double())
    given = [grad, q, k, v, output, lse]
    for ours, theirs in zip(ran(lambda ops, *t: ops.sdpfa_bwd(*t, 0.0, causal, scale), given), wide):
        close(ours, theirs.grad.to(dtype), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.complex64])
def test_index_put_accumulate(dtype):
    x, rows = (normal(4, 3) * 4).to(dtype), (normal(9, 3, seed=1) * 4).to(dtype)
    index = torch.tensor([0, 2, 2, 3, 0, 2, 0, 0, 3])
    expected = torch.index_put(x, (index,), rows, accumulate=True)
    close(ran(lambda ops, x, i, r: ops.index_put_accumulate(x, i, r), [x, index, rows])[0], expected, torch.bfloat16 if dtype == torch.bfloat16 else dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.int64, torch.uint8, torch.complex64])
@pytest.mark.parametrize("shape,dim,count", [((4, 5), 0, 9), ((4, 5), -1, 9), ((3, 4, 2), 1, 7), ((6,), 0, 40), ((2, 3), 0, 0)])
def test_scatter_add(dtype, shape, dim, count):
    places = list(shape)
    places[dim] = count
    x, source = (normal(*shape) * 4).to(dtype), (normal(*places, seed=1) * 4).to(dtype)
    index = torch.randint(0, shape[dim], places, generator=torch.Generator().manual_seed(2))
    wide = torch.float64 if dtype in FLOATS else dtype
    expected = torch.scatter_add(x.to(wide), dim, index, source.to(wide)).to(dtype)
    for given in (index, index.int()):
        outs = [ran(lambda ops, x, i, s: ops.scatter_add(x, i, s, dim), [x, given, source])[0] for _ in range(2)]
        torch.testing.assert_close(outs[0], expected, rtol=0.05 if dtype in (torch.bfloat16, torch.float16) else 1e-5, atol=0.1 if dtype == torch.bfloat16 else 1e-2)
        assert torch.equal(outs[0], outs[1])


def test_scatter_add_with_a_shorter_index():
    x, source = normal(4, 5), normal(2, 3, seed=1)
    index = torch.tensor([[4, 0, 4], [1, 1, 1]])
    close(ran(lambda ops, x, i, s: ops.scatter_add(x, i, s, 1), [x, index, source])[0], torch.scatter_add(x, 1, index, source))


@pytest.mark.parametrize("a,b", [(torch.float8_e4m3fn, torch.float8_e4m3fn), (torch.float8_e5m2, torch.float8_e4m3fn)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("rows", [False, True])
def test_scaled_mm(a, b, dtype, rows):
    x, y = normal(5, 16).to(a), normal(16, 7, seed=1).to(b)
    scale_x = normal(5, seed=2).abs() if rows else torch.tensor(0.5)
    scale_y = normal(7, seed=3).abs() if rows else torch.tensor(3.0)
    bias = normal(7, seed=4).to(dtype)
    product = (x.double() * (scale_x[:, None] if rows else scale_x)) @ (y.double() * scale_y)
    word = {torch.bfloat16: DataType.BFloat16, torch.float16: DataType.Half, torch.float32: DataType.Float}[dtype]
    close(ran(lambda ops, *t: ops.scaled_mm(*t, dtype=word), [x, y, scale_x, scale_y])[0], product.to(dtype), dtype)
    close(ran(lambda ops, *t: ops.scaled_mm(*t, dtype=word), [x, y, scale_x, scale_y, bias])[0], (product + bias).to(dtype), dtype)


COMPLEX = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"]


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_functions_of_complex_numbers(name, dtype):
    x = torch.complex(normal(30, 40, dtype=torch.float64) * 3, normal(30, 40, dtype=torch.float64, seed=1) * 3).to(dtype)
    ours = ran(lambda ops, x: getattr(ops, name)(x), [x])[0]
    digits = 2e-6 if dtype == torch.complex64 else 1e-13
    torch.testing.assert_close(ours, getattr(torch, name)(x.to(torch.complex128)).to(dtype), rtol=digits, atol=digits)


def parts_of(numbers):
    return torch.tensor([complex(a, b) for a in numbers for b in numbers], dtype=torch.complex128)


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_complex_numbers_at_their_cuts(name):
    """Zeros with their signs, and numbers on both sides of every cut."""
    x = parts_of([-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0])
    theirs = getattr(torch, name)(x)
    ours = ran(lambda ops, x: getattr(ops, name)(x), [x])[0]
    finite = torch.isfinite(theirs)
    torch.testing.assert_close(ours[finite], theirs[finite], rtol=1e-13, atol=1e-13)
    assert not torch.isfinite(ours[~finite]).any()


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_infinite_complex_numbers(name):
    """Where the C standard and torch give a number or an infinity, so does this. Elsewhere the parts are not defined."""
    inf, nan = float("inf"), float("nan")
    x = parts_of([-inf, -1.0, 0.0, 1.0, inf, nan])
    theirs = getattr(torch, name)(x)
    ours = ran(lambda ops, x: getattr(ops, name)(x), [x])[0]
    known = torch.isfinite(theirs)
    if name not in ("rsqrt", "sigmoid"):  # torch composes these, which makes NaN of infinities
        torch.testing.assert_close(ours[known], theirs[known], rtol=1e-13, atol=1e-13)
    isnan = torch.isnan(x.real) & torch.isnan(x.imag)
    assert torch.isnan(torch.view_as_real(ours[isnan])).any()


def test_complex_functions_between_kernels():
    x, y = torch.complex(normal(6, 7), normal(6, 7, seed=1)), torch.complex(normal(6, 7, seed=2), normal(6, 7, seed=3))
    outs = ran(lambda ops, x, y: ops.abs(ops.exp(ops.mul(x, y))), [x, y])
    torch.testing.assert_close(outs[0], torch.exp(x * y).abs(), rtol=2e-5, atol=2e-5)
    fd = FusionDefinition("between")
    given = [fd.from_pytorch(t) for t in (x, y)]
    fd.add_output(fd.ops.abs(fd.ops.exp(fd.ops.mul(*given))))
    assert [part.scheduler for part in fd.plan([x, y])] == ["pointwise", "expr_eval", "pointwise"]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_moments_of_complex_numbers(dtype):
    x = torch.complex(normal(5, 9, dtype=torch.float64), normal(5, 9, dtype=torch.float64, seed=1) * 2 + 1).to(dtype)
    for dims, correction, keepdim in (([1], 1, False), ([0, 1], 0, True), ([0], 2, False)):
        ours = ran(lambda ops, x: ops.var_mean(x, dims, correction, keepdim), [x])
        for got, wanted in zip(ours, torch.var_mean(x, dims, correction=correction, keepdim=keepdim)):
            assert got.dtype == wanted.dtype
            torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)
        variance = ran(lambda ops, x: ops.var(x, dims, correction, keepdim), [x])[0]
        torch.testing.assert_close(variance, torch.var(x, dims, correction=correction, keepdim=keepdim), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_triangle_of_complex_numbers(dtype):
    x = torch.complex(normal(5, 7, dtype=torch.float64), normal(5, 7, dtype=torch.float64, seed=1)).to(dtype)
    for diagonal in (-2, 0, 1, 9):
        assert torch.equal(ran(lambda ops, x: ops.triu(x, diagonal), [x])[0], torch.triu(x, diagonal))


@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, float("inf")])
def test_embedding_with_max_norm(p):
    weight, index = normal(6, 5), torch.tensor([[0, 5], [2, 2]])
    expected = F.embedding(index, weight.clone(), max_norm=1.5, norm_type=p)
    close(ran(lambda ops, i, w: ops.embedding_fwd(i, w, max_norm=1.5, norm_type=p), [index, weight])[0], expected)


def test_kernels_before_and_behind():
    x, w, b = normal(6, 8), normal(4, 8, seed=1), normal(4, seed=2)
    outs = ran(lambda ops, x, w, b: ops.relu(ops.linear(ops.mul(x, 2.0), w, b)), [x, w, b])
    close(outs[0], F.relu(F.linear(x * 2, w, b)))
    fd = FusionDefinition("between")
    given = [fd.from_pytorch(t) for t in (x, w, b)]
    fd.add_output(fd.ops.relu(fd.ops.linear(fd.ops.mul(given[0], 2.0), *given[1:])))
    assert [part.scheduler for part in fd.plan([x, w, b])] == ["pointwise", "expr_eval"]


def test_any_strides():
    x, w = normal(8, 6).t(), normal(10, 8, seed=1)[::2]
    close(ran(lambda ops, x, w: ops.linear(x, w), [x, w])[0], F.linear(x, w))


def test_what_is_refused():
    x, y, i = normal(3, 4), normal(5, 3), torch.tensor([0, 7])

    def code(build, inputs):
        return refused(lambda: ran(build, inputs)).code

    assert code(lambda ops, a, b: ops.matmul(a, b), [x, y]) == "E0407"
    assert code(lambda ops, a, b: ops.matmul(a, b), [x, y.double()]) == "E0204"
    assert code(lambda ops, a: ops.matmul(a, a), [torch.ones(3, 3, dtype=torch.int32)]) == "E0204"
    assert code(lambda ops, a: ops.cumsum(a, 2), [x]) == "E0206"
    assert code(lambda ops, a: ops.topk(a, 5, 1), [x]) == "E0407"
    assert code(lambda ops, a: ops.cummax(a, 0), [torch.ones(3, dtype=torch.complex64)]) == "E0204"
    assert code(lambda ops, a: ops.sdpfa_fwd(a, a, a), [x]) == "E0205"
    assert code(lambda ops, a: ops.sdpfa_fwd(a, a, a, 0.1), [normal(1, 1, 2, 2)]) == "E0212"
    assert code(lambda ops, a, i, r: ops.index_put_accumulate(a, i, r), [x, i, normal(2, 4)]) == "E0419"
    assert code(lambda ops, a, i, r: ops.scatter_add(a, i, r, 0), [x, torch.tensor([[0, 3]]), normal(1, 2)]) == "E0419"
    assert code(lambda ops, a, i, r: ops.scatter_add(a, i, r, 0), [x, torch.zeros(1, 5, dtype=torch.int64), normal(1, 5)]) == "E0407"
    assert code(lambda ops, a, b: ops.scaled_mm(a, b, a, b), [x, y]) == "E0205"
    assert code(lambda ops, a: ops.erf(a), [torch.ones(3, dtype=torch.complex64)]) == "E0211"
    assert code(lambda ops, a, b, e: ops.grouped_mm(a, b, e), [normal(4, 3), normal(2, 3, 2), torch.tensor([3, 2], dtype=torch.int32)]) == "E0419"


def test_a_kernel_takes_none_of_them():
    fd = FusionDefinition("scheduled")
    x = fd.from_pytorch(normal(4, 8))
    y = fd.ops.cumsum(x, 1)
    fd.add_output(y)
    fd.sched.parallelize(y, 0, ParallelType.grid_x)
    assert refused(lambda: fd.execute([normal(4, 8)])).code == "E0321"
    fd = FusionDefinition("complex")
    given = torch.complex(normal(4, 8), normal(4, 8))
    y = fd.ops.exp(fd.from_pytorch(given))
    fd.add_output(y)
    fd.sched.parallelize(y, 0, ParallelType.grid_x)
    assert refused(lambda: fd.execute([given])).code == "E0321"
