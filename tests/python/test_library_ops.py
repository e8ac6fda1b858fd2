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
    assert [part.scheduler for part in fd.plan([x, w, b])] == ["pointwise", "expr_eval", "pointwise"]


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
    assert code(lambda ops, a, b, e: ops.grouped_mm(a, b, e), [normal(4, 3), normal(2, 3, 2), torch.tensor([3, 2], dtype=torch.int32)]) == "E0419"


def test_a_kernel_takes_none_of_them():
    fd = FusionDefinition("scheduled")
    x = fd.from_pytorch(normal(4, 8))
    y = fd.ops.cumsum(x, 1)
    fd.add_output(y)
    fd.sched.parallelize(y, 0, ParallelType.grid_x)
    assert refused(lambda: fd.execute([normal(4, 8)])).code == "E0321"
