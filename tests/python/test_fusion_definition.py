"""fusebox.FusionDefinition on the host executor: results agree with ATen, nothing is copied, and errors have a code."""

import gc
import math
import weakref

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from definitions import code_of, normal  # noqa: E402
from fusebox import DataType, FuseboxError, FusionDefinition  # noqa: E402


def silu_mul(x, y):
    with FusionDefinition("silu_mul") as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        p = fd.ops.mul(fd.ops.silu(fd.ops.cast(a, DataType.Float)), fd.ops.cast(b, DataType.Float))
        fd.add_output(fd.ops.cast(p, DataType.BFloat16))
    return fd


def test_a_program_agrees_with_aten():
    x, y = normal(5, 37, dtype=torch.bfloat16), normal(5, 37, dtype=torch.bfloat16, seed=1)
    fd = silu_mul(x, y)
    (out,) = fd.execute([x, y])
    assert out.dtype == torch.bfloat16 and out.stride() == (37, 1)
    torch.testing.assert_close(out, (torch.nn.functional.silu(x.float()) * y.float()).bfloat16())
    fd.validate([x, y])


def test_long_sums_without_a_schedule_keep_their_digits():
    x = torch.full((2**22,), 0.49)
    with FusionDefinition("sum") as fd:
        fd.add_output(fd.ops.sum(fd.from_pytorch(x), [0]))
    (total,) = fd.execute([x])
    assert abs(total.item() - x.double().sum().item()) <= 2
    y = normal(2**22) + 100
    with FusionDefinition("spread") as fd:
        var, mean = fd.ops.var_mean(fd.from_pytorch(y), [0])
        fd.add_output(var)
        fd.add_output(mean)
    var, mean = fd.execute([y])
    assert abs(var.item() / y.double().var().item() - 1) < 1e-4
    assert abs(mean.item() - y.double().mean().item()) < 1e-4


def test_the_definition_takes_other_sizes():
    fd = silu_mul(normal(2, 3, dtype=torch.bfloat16), normal(2, 3, dtype=torch.bfloat16))
    for shape in [(1, 1), (7, 129), (0, 4), (3, 1)]:
        x, y = normal(*shape, dtype=torch.bfloat16), normal(*shape, dtype=torch.bfloat16, seed=1)
        (out,) = fd.execute([x, y])
        torch.testing.assert_close(out, (torch.nn.functional.silu(x.float()) * y.float()).bfloat16())


@pytest.mark.parametrize(
    "make",
    [
        lambda: normal(6, 8)[:, :5],
        lambda: normal(6, 8).t(),
        lambda: normal(6, 8)[2:, 3:].t(),
        lambda: normal(6, 1).expand(6, 8),
        lambda: normal(4, 1, 3).permute(2, 1, 0),
        lambda: normal(1)[0],
        lambda: normal(24)[::2].reshape(3, 4),
    ],
)
def test_any_strides(make):
    x = make()
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.mul(fd.ops.exp(fd.from_pytorch(x)), 2.0))
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, x.exp() * 2)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.float8_e4m3fn])
def test_every_dtype_crosses_the_border(dtype):
    x = (normal(3, 5) * 3).to(dtype)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.set(fd.from_pytorch(x)))
    (out,) = fd.execute([x])
    assert out.dtype == dtype and torch.equal(out.view(torch.uint8) if dtype == torch.float8_e4m3fn else out, x.view(torch.uint8) if dtype == torch.float8_e4m3fn else x)


def test_pointwise_mixes_of_operands():
    x = normal(4, 5).abs() + 0.5
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        s = fd.define_scalar(DataType.Double)
        half = fd.define_scalar(0.5)
        fd.add_output(fd.ops.add(t, 1))
        fd.add_output(fd.ops.sub(s, t))
        fd.add_output(fd.ops.pow(2.0, t))
        fd.add_output(fd.ops.truediv(t, half))
        fd.add_output(fd.ops.where(fd.ops.gt(t, s), t, 0.0))
        fd.add_output(fd.ops.lerp(t, s, 0.25))
        fd.add_output(fd.ops.clamp(t, min=0.6, max=half))
        fd.add_output(fd.ops.addcmul(t, t, t, 0.5))
        fd.add_output(fd.ops.mul(t, fd.ops.mul(s, 2)))
    outs = fd.execute([x, 1.25])
    expected = [x + 1, 1.25 - x, 2.0**x, x / 0.5, torch.where(x > 1.25, x, 0.0), x + 0.25 * (1.25 - x), x.clamp(0.6, 0.5), x + 0.5 * x * x, x * 2.5]
    for out, want in zip(outs, expected, strict=True):
        torch.testing.assert_close(out, want)


def test_every_pointwise_op_is_there_and_in_the_stub():
    import pathlib
    import re

    from fusebox import _fusebox

    stub = (pathlib.Path(fusebox.__file__).parent / "pointwise.pyi").read_text()
    names = {name for name, _ in _fusebox.pointwise_ops()}
    assert set(re.findall(r"def (\w+)\(self, ", stub)) - {"__init__"} == names
    assert len(names) > 75
    fd = FusionDefinition()
    x = fd.define_tensor([-1], dtype=DataType.Int)
    for name, count in _fusebox.pointwise_ops():
        try:
            assert getattr(fd.ops, name)(*[x] * count).name
        except FuseboxError as e:
            assert e.code in ("E0204", "E0211"), (name, e)


def test_reductions():
    x = normal(4, 6, 5)
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1, -1], True)
        fd.add_output(fd.ops.sum(t, [0, -1]))
        fd.add_output(fd.ops.max(t, 1, keepdim=True))
        fd.add_output(fd.ops.min(t))
        fd.add_output(fd.ops.sum(t, dtype=DataType.Double))
        fd.add_output(fd.ops.var(t, [2], correction=0))
        for out in fd.ops.var_mean(t, [1], keepdim=True):
            fd.add_output(out)
        for out in fd.ops.welford(t, [2]):
            fd.add_output(out)
    outs = fd.execute([x])
    mean = x.mean(2)
    expected = [
        x.sum((0, 2)), x.amax(1, keepdim=True), x.min(), x.double().sum(), x.var(2, correction=0),
        *torch.var_mean(x, 1, keepdim=True), mean, ((x - mean[..., None]) ** 2).sum(2), torch.full((4, 6), 5),
    ]
    for out, want in zip(outs, expected, strict=True):
        torch.testing.assert_close(out, want)


def test_metadata_and_indexing():
    x, y = normal(4, 6), normal(4, 6, seed=1)
    index = torch.tensor([3, 0, 2])
    along = torch.randint(0, 6, (4, 2), generator=torch.Generator().manual_seed(2))
    with FusionDefinition() as fd:
        t, u, i, a = (fd.from_pytorch(v) for v in (x, y, index, along))
        fd.add_output(fd.ops.permute(t, [1, 0]))
        fd.add_output(fd.ops.reshape(t, [2, 2, 6]))
        fd.add_output(fd.ops.slice(t, [1, 0], [4, 6], [1, 1]))
        fd.add_output(fd.ops.slice(t, [0, 1], [2, 4]))
        fd.add_output(fd.ops.pad(t, [1, 2], -1.0))
        fd.add_output(fd.ops.cat([t, u], 1))
        fd.add_output(fd.ops.broadcast(t, [False, True, False]))
        fd.add_output(fd.ops.index_select(t, i, 0))
        fd.add_output(fd.ops.gather(t, a, 1))
        fd.add_output(fd.ops.select(t, 2, 1))
        fd.add_output(fd.ops.triu(t, 1))
        fd.add_output(fd.ops.iota(5, 1, 2))
        fd.add_output(fd.ops.full([fd.ops.size(t, 0), 3], 7, DataType.Int32))
        fd.add_output(fd.ops.embedding_fwd(i, u))
        fd.add_output(fd.ops.stride_order(t, [0, 1]))
    outs = fd.execute([x, y, index, along])
    expected = [
        x.t(), x.reshape(2, 2, 6), x[1:], x[:2, 1:4], torch.nn.functional.pad(x, (1, 2), value=-1.0), torch.cat([x, y], 1), x[:, None], x[index],
        x.gather(1, along), x[:, 2], x.triu(1), torch.arange(1, 11, 2), torch.full((4, 3), 7, dtype=torch.int32), y[index], x,
    ]
    for out, want in zip(outs, expected, strict=True):
        assert out.shape == want.shape
        torch.testing.assert_close(out, want)
    assert outs[-1].stride() == (1, 4)


def test_define_tensor_says_what_from_pytorch_says():
    x = normal(3, 1, 4).permute(2, 1, 0)
    texts = []
    for define in (
        lambda fd: fd.from_pytorch(x, name="x"),
        lambda fd: fd.define_tensor([4, 1, 3], list(x.stride()), DataType.Float, name="x"),
        lambda fd: fd.define_tensor([-1, 1, -1], [True, None, True], DataType.Float, False, [0, 1, 2], name="x"),
    ):
        fd = FusionDefinition()
        fd.add_output(fd.ops.neg(define(fd)))
        texts.append(fd.to_string())
    assert texts[0] == texts[1] == texts[2]
    static = FusionDefinition()
    assert static.from_pytorch(x, static_sizes=True).shape == [4, 1, 3]


def test_inputs_are_not_copied_and_outputs_own_their_memory():
    x = normal(4, 5)
    before = x.clone()
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, 1.0), alias_input=t)
        fd.add_output(fd.ops.mul(t, 2.0))
    address = x.data_ptr()
    outs = fd.execute([x])
    assert len(outs) == 1 and x.data_ptr() == address
    torch.testing.assert_close(x, before + 1)
    torch.testing.assert_close(outs[0], before * 2)
    del fd
    outs[0].add_(1)
    torch.testing.assert_close(outs[0], before * 2 + 1)


@pytest.mark.parametrize("is_clone", [True, False])
def test_an_overwritten_lazy_clone_leaves_its_source_alone(is_clone):
    """A lazy clone shares its source's memory until one of them is written."""
    fd = FusionDefinition()
    t = fd.define_tensor([-1], True, DataType.Float)
    fd.add_output(fd.ops.add(t, 1.0), alias_input=t)
    source = torch.zeros(100)
    clone = torch._lazy_clone(source)
    written, other = (clone, source) if is_clone else (source, clone)
    fd.execute([written])
    assert torch.equal(written, torch.ones(100)) and torch.equal(other, torch.zeros(100))


@pytest.mark.parametrize("kind", ["plain", "scheduled", "random", "copied"])
def test_a_definition_ends_with_its_last_reference(kind):
    """It is in no cycle of references, so Python's collector, which runs at any moment, never ends it with the kernels that it loaded."""

    def defined():
        fd = FusionDefinition()
        x = fd.define_tensor([-1, -1], True, DataType.Float)
        y = fd.ops.add(x, fd.ops.uniform(0.0, 1.0, fd.ops.shape(x)) if kind == "random" else 1.0)
        fd.add_output(y)
        if kind == "scheduled":
            fd.sched.split(y, 1, 4)
        return fd.copy() if kind == "copied" else fd

    gc.collect()
    gc.disable()
    try:
        fd = defined()
        fd.execute([torch.zeros(3, 5)])
        ended = weakref.ref(fd)
        del fd
        assert ended() is None
    finally:
        gc.enable()


def test_in_place_on_a_view_leaves_the_rest():
    base = torch.zeros(6, 8)
    view = base[1:5, 2:7]
    with FusionDefinition() as fd:
        t = fd.from_pytorch(view)
        fd.add_output(fd.ops.add(t, 1.0), t)
    assert fd.execute([view]) == []
    assert base.sum() == 20 and torch.equal(view, torch.ones(4, 5))


def test_what_is_wrong_has_a_code(tmp_path):
    fd = FusionDefinition()
    x = fd.define_tensor([-1, 4])
    y = fd.define_tensor([-1, 5])
    assert code_of(lambda: fd.ops.add(x, y)) == "E0203"
    assert code_of(lambda: fd.ops.nv_block_quantize(x)) == "E0212"
    assert code_of(lambda: fd.ops.no_such_op(x)) == "E0201"
    assert code_of(lambda: fd.ops.add(x)) == "E0202"
    assert code_of(lambda: fd.ops.add(x, arg3=1)) == "E0202"
    assert code_of(lambda: fd.ops.add(x, "1")) == "E0215"
    assert code_of(lambda: fd.ops.sum(x, [2])) == "E0206"
    assert code_of(lambda: fd.ops.sum(2.0)) == "E0215"
    assert code_of(lambda: fd.ops.cast(x, "float")) == "E0102"
    assert code_of(lambda: fd.ops.add(x, 2**70)) == "E0104"
    assert code_of(lambda: fd.define_vector(3)) == "E0212"
    assert code_of(lambda: fd.define_tensor([-1], [True, True])) == "E0207"
    assert code_of(lambda: fd.define_tensor([3, -1], stride_order=[0, 0])) == "E0207"
    assert code_of(lambda: FusionDefinition().add_output(x)) == "E0215"
    assert code_of(lambda: fd.ops.slice(x, [0, 0], [4, 4], [1, 2])) == "E0212"
    assert code_of(lambda: fd.ops.select(x, 0, "a")) == "E0207"
    assert code_of(lambda: fd.ops.cat(x)) == "E0207"
    assert code_of(lambda: fd.ops.permute(x, "10")) == "E0207"
    assert code_of(lambda: fd.ops.broadcast(x, 5)) == "E0207"
    assert code_of(lambda: fd.ops.full([2], None, DataType.Float)) == "E0215"
    assert code_of(lambda: fd.define_scalar("x")) == "E0102"
    assert code_of(lambda: fd.define_tensor([-2])) == "E0207"
    assert code_of(lambda: fd.define_tensor("ab")) == "E0207"
    assert code_of(lambda: fd.sched.set_memory_type(x, "shared")) == "E0207"
    out = fd.ops.exp(x)
    fd.add_output(out)
    assert code_of(lambda: fd.sched.schedule()) == "E0318"
    assert code_of(lambda: out.split(2, 4)) == "E0206"
    out.split(1, 2)
    assert code_of(lambda: out.merge(0, 0)) == "E0302"
    assert code_of(lambda: fd.ops.exp(x)) == "E0208"
    assert code_of(lambda: fusebox.replay(tmp_path / "none.fuse")) == "E0430"
    (tmp_path / "text.fuse").write_text("no bundle")
    assert code_of(lambda: fusebox.replay(tmp_path / "text.fuse")) == "E0110"
    run = FusionDefinition()
    run.add_output(run.ops.iota(4))
    assert code_of(lambda: run.record(tmp_path / "no" / "such.fuse", [])) == "E0431"


def test_wrong_inputs_have_a_code():
    x = normal(3, 4)
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, 4])
        fd.add_output(fd.ops.mul(t, fd.define_scalar(DataType.Int)))
    assert code_of(lambda: fd.execute([x])) == "E0402"
    assert code_of(lambda: fd.execute([x, 2, 3])) == "E0401"
    assert code_of(lambda: fd.execute([x, x])) == "E0401"
    assert code_of(lambda: fd.execute([2, 2])) == "E0401"
    assert code_of(lambda: fd.execute([x, 2.5])) == "E0401"
    assert code_of(lambda: fd.execute([x.double(), 2])) == "E0401"
    assert code_of(lambda: fd.execute([x.t().contiguous(), 2])) == "E0401"
    assert code_of(lambda: fd.execute([normal(4, 3).t(), 2])) == "E0401"
    assert code_of(lambda: fd.execute(["x", 2])) == "E0401"
    assert code_of(lambda: fd.execute([x.to_sparse(), 2])) == "E0401"
    assert code_of(lambda: fd.execute([x.to("meta"), 2])) == "E0401"
    torch.testing.assert_close(fd.execute([x, 3])[0], x * 3)
    if not torch.cuda.is_available():
        assert code_of(lambda: fd.execute([x, 3], device="cuda")) == "E0401"


def test_the_error_says_where():
    fd = FusionDefinition()
    x = fd.define_tensor([4], name="x")
    with pytest.raises(FuseboxError) as caught:
        fd.ops.add(x, fd.define_tensor([5], name="y"))
    assert caught.value.code == "E0203" and caught.value.place.startswith("%") and caught.value.code in str(caught.value)


def test_scalars():
    with FusionDefinition() as fd:
        s = fd.define_scalar(DataType.Double)
        n = fd.define_scalar(3)
        assert s.dtype == DataType.Double and n.dtype == DataType.Int
        fd.add_output(fd.ops.full([2, n], fd.ops.mul(s, 2.0), DataType.Float))
    (out,) = fd.execute([math.pi])
    torch.testing.assert_close(out, torch.full((2, 3), 2 * math.pi))


def test_a_defect_is_found(tmp_path):
    x = normal(33, 130)
    with FusionDefinition(defects=["extent-truncated"]) as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.neg(t))
    with pytest.raises(FuseboxError) as caught:
        fd.execute([x])
    assert caught.value.code == "E0417"
    with pytest.raises(FuseboxError):
        fd.record(tmp_path / "broken.fuse", [x])
    assert fusebox.replay(tmp_path / "broken.fuse").identical
    with pytest.raises(FuseboxError) as caught:
        FusionDefinition(defects=["no-such-defect"])
    assert caught.value.code == "E0102"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")
def test_on_a_gpu():
    x, y = normal(33, 130, dtype=torch.bfloat16).cuda(), normal(33, 130, dtype=torch.bfloat16, seed=1).cuda()
    fd = silu_mul(x, y)
    for _ in range(2):
        (out,) = fd.execute([x, y])
        assert out.device == x.device
        torch.testing.assert_close(out, (torch.nn.functional.silu(x.float()) * y.float()).bfloat16())
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.neg(t), t)
    before = x.clone()
    assert fd.execute([x]) == []
    assert torch.equal(x, -before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")
def test_a_gpu_run_is_checked_and_recorded(tmp_path):
    x, y = normal(33, 130, dtype=torch.bfloat16).cuda(), normal(33, 130, dtype=torch.bfloat16, seed=1).cuda()
    fd = silu_mul(x, y)
    fd.validate([x, y])
    fd.record(tmp_path / "gpu.fuse", [x, y])
    again = fusebox.replay(tmp_path / "gpu.fuse")
    assert again.executor == "cuda" and again.identical
    assert not any(s.verdict == "different" for s in fusebox.replay(tmp_path / "gpu.fuse", on="host").stages if s.name != "outputs")


MEMORY = """
import resource, sys
import torch, fusebox
from fusebox import FusionDefinition, FuseboxError

with FusionDefinition() as fd:
    x = fd.define_tensor([-1], name="x")
    fd.add_output(fd.ops.add(fd.ops.full([1 << 30], 1.0, fusebox.DataType.Float), fd.ops.sum(x, [0])))
with open("/proc/self/statm") as f:
    used = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28),) * 2)
x = torch.ones(4)
for run in (lambda: fd.execute([x]), lambda: fd.validate([x]), lambda: fd.record(sys.argv[1])):
    try:
        run()
        print("ran")
    except FuseboxError as e:
        print(e.code)
"""


def test_memory_that_runs_out_has_a_code(tmp_path):
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path / "a.fuse")], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(done.stdout.split()) <= {"E0406", "E0402", "E0423"} and done.stdout.startswith("E0406"), done.stdout


def test_an_extent_that_an_op_computes():
    """A quotient of integers may be an extent. The error for other values names the op and the ops that can be extents."""
    x = torch.arange(24.0)
    with FusionDefinition() as fd:
        s = fd.define_scalar(DataType.Double)
        rows = fd.ops.cast(fd.ops.reciprocal(s), DataType.Int)
        fd.add_output(fd.ops.reshape(fd.from_pytorch(x), [rows, -1]))
    (out,) = fd.execute([0.25, x])
    assert out.shape == (4, 6)
    with FusionDefinition() as fd:
        s = fd.define_scalar(DataType.Double)
        rows = fd.ops.cast(fd.ops.exp(s), DataType.Int)
        fd.add_output(fd.ops.reshape(fd.from_pytorch(x), [rows, -1]))
    with pytest.raises(FuseboxError) as caught:
        fd.execute([0.0, x])
    assert caught.value.code == "E0214" and "exp" in caught.value.message and "div" in caught.value.message


def test_complex_scalars_are_outputs():
    fd = FusionDefinition()
    fd.add_output(fd.define_scalar(DataType.ComplexFloat))
    fd.add_output(fd.define_scalar(1 + 2j))
    fd.add_output(3 - 4j)
    assert fd.execute([0.5 - 1j]) == [0.5 - 1j, 1 + 2j, 3 - 4j]


@pytest.mark.parametrize("count", [16, 17, 40])
def test_cat_of_many_symbolic_extents(count):
    fd = FusionDefinition()
    tensors = [torch.randn(i % 3) for i in range(count)]
    joined = fd.ops.cat([fd.define_tensor([-1]) for _ in tensors])
    fd.add_output(joined)
    fd.add_output(fd.ops.add(fd.ops.exp(joined), joined))
    again = FusionDefinition.from_text(fd.to_string())
    for program in (fd, again):
        first, second = program.execute(tensors)
        assert torch.equal(first, torch.cat(tensors))
        torch.testing.assert_close(second, first.exp() + first)
