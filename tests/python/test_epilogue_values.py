"""Products of matrices with their epilogues through the Python package: the plan names them, and values are as close as one rounding allows."""

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)


def gelu(ops, x):
    inner = ops.mul(ops.add(x, ops.mul(ops.mul(ops.mul(x, x), x), 0.044715)), 0.7978845608028654)
    return ops.mul(ops.mul(x, 0.5), ops.add(ops.tanh(inner), 1.0))


def mlp(x, w, b, activation, **options):
    fd = fusebox.FusionDefinition("mlp", **options)
    given = [fd.from_pytorch(t) for t in (x, w, b)]
    y = fd.ops.linear(*given)
    if activation == "relu":
        fd.add_output(fd.ops.relu(y))
    else:
        is_wide = x.dtype == torch.float32
        wide = gelu(fd.ops, y if is_wide else fd.ops.cast(y, torch.float32))
        fd.add_output(wide if is_wide else fd.ops.cast(wide, x.dtype))
    return fd


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("shape", [(33, 40, 17), (2, 5, 3), (4, 0, 6), (0, 3, 4)])
def test_values(dtype, activation, shape):
    m, k, n = shape
    generator = torch.Generator().manual_seed(5)
    x, w, b = (torch.randn(s, generator=generator).to(dtype) for s in ((m, k), (n, k), (n,)))
    fd = mlp(x, w, b, activation)
    assert [(d.scheduler, d.choices) for d in fd.plan([x, w, b])] == [("expr_eval", {"epilogue": f"bias {activation}"})]
    wide = torch.nn.functional.linear(x.double(), w.double(), b.double())
    wide = torch.relu(wide) if activation == "relu" else torch.nn.functional.gelu(wide, approximate="tanh")
    ours = fd.execute([x, w, b])[0]
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(ours.double(), wide, rtol=step, atol=max(4 * step * k**0.5 if dtype == torch.float32 else step * 1e-2, 1e-6))
    fd.validate([x, w, b])


def test_exact_precision_keeps_gelu_apart():
    x, w, b = torch.randn(8, 16), torch.randn(24, 16), torch.randn(24)
    fd = mlp(x, w, b, "gelu", precision="exact")
    decisions = fd.plan([x, w, b])
    assert [d.scheduler for d in decisions] == ["expr_eval", "pointwise"]
    assert "is exact, and libraries approximate tanh" in decisions[0].declined["epilogue"]
