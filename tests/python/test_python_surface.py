"""What the package offers beside definitions: error classes, files, texts of kernels, profiles, and either order of imports."""

import pickle
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from definitions import error_of  # noqa: E402
from fusebox import DataType, FuseboxError, FusionDefinition, ParallelType, _fusebox, errors  # noqa: E402
from support import PROGRAMS, SHARED  # noqa: E402

HAS_GPU = torch.cuda.is_available()


def scaled(name="scaled"):
    """y = 2 x, with a schedule."""
    fd = FusionDefinition(name)
    x = fd.define_tensor([-1, -1], True, DataType.Float, name="x")
    y = fd.ops.mul(x, 2.0)
    fd.add_output(y)
    fd.sched.split(y, 1, 4)
    fd.sched.parallelize(y, 0, ParallelType.grid_x)
    fd.sched.parallelize(y, 2, ParallelType.block_x)
    return fd


# -- errors


def test_every_code_has_a_class_and_every_class_a_code():
    assert sorted(errors.CLASSES) == sorted(_fusebox.error_codes())
    assert len(set(_fusebox.error_codes())) == len(_fusebox.error_codes())
    for cls in (fusebox.FuseboxValueError, fusebox.FuseboxTypeError, fusebox.FuseboxIndexError, fusebox.FuseboxInputError):
        assert cls in errors.CLASSES.values()


@pytest.mark.parametrize("code", _fusebox.error_codes())
def test_an_error_of_each_code(code):
    error = FuseboxError(code, "a sentence", "%x")
    assert type(error) is errors.CLASSES[code] and isinstance(error, FuseboxError) and isinstance(error, RuntimeError)
    assert (error.code, error.message, error.place) == (code, "a sentence", "%x")
    assert str(error) == f"{code} a sentence (at %x)"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and (again.code, again.message, again.place) == (error.code, error.message, error.place)
    with pytest.raises(RuntimeError):
        raise error


def test_a_code_of_a_newer_version_is_a_plain_error():
    assert type(FuseboxError("E0999", "new")) is FuseboxError


def test_errors_are_what_pythons_users_expect():
    fd = scaled()
    x = torch.randn(3, 5)
    other = FusionDefinition()
    a, b = other.define_tensor([2, 3]), other.define_tensor([4, 5])
    assert isinstance(error_of(lambda: other.ops.add(a, b)), ValueError)
    assert isinstance(error_of(lambda: other.ops.sum(a, [7])), IndexError)
    assert isinstance(error_of(lambda: other.ops.exp("x")), TypeError)
    assert isinstance(error_of(lambda: fd.execute(["x"])), TypeError)
    assert isinstance(error_of(lambda: fd.execute([x.double()])), TypeError)
    assert isinstance(error_of(lambda: fd.execute([x[0]])), ValueError)
    assert isinstance(error_of(lambda: fd.execute([])), TypeError)
    assert isinstance(error_of(lambda: FusionDefinition.from_text("nonsense")), ValueError)
    assert isinstance(error_of(lambda: other.define_tensor([2], dtype="f99")), ValueError)
    missing = error_of(lambda: fusebox.load("no/such/file.fir"))
    assert missing.code == "E0430" and not isinstance(missing, (TypeError, ValueError, IndexError))


# -- files and texts


def test_load_reads_text_bundles_and_modules(tmp_path):
    fd = fusebox.load(PROGRAMS / "silu_mul_bias.fir")
    text = (PROGRAMS / "silu_mul_bias.fir").read_text()
    assert fd.to_string() == FusionDefinition.from_text(text).to_string()
    mine = scaled()
    x = torch.randn(3, 5)
    mine.record(tmp_path / "mine.fuse", [x])
    again = fusebox.load(tmp_path / "mine.fuse")
    assert again.to_string() == mine.to_string() and again.program.name() == "scaled"
    assert torch.equal(again.execute([x])[0], 2 * x)


def test_load_takes_the_steps_of_a_bundles_run(tmp_path):
    from support import fusebox as command

    program, steps = PROGRAMS / "silu_mul_bias.fir", tmp_path / "steps.txt"
    steps.write_text("split %out.i1 by 32 -> o, t\ntransform_like %out to []\nparallelize %out.t on block.x\nparallelize_like %out to []\ninline_most of []\n")
    path = tmp_path / "b.fuse"
    assert command("run", program, "--on", "host", "--steps", steps, "--record", path).returncode == 0
    assert fusebox.load(path).program.step_lines() == steps.read_text().splitlines()
    assert command("run", program, "--on", "host", "--unfused", "--record", path).returncode == 0
    unfused = fusebox.load(path).program.step_lines()
    assert len(unfused) > 1 and all(line.startswith("assign of [%") and "," not in line for line in unfused), unfused
    assert fusebox.load(program).program.step_lines() != []


def test_load_names_a_fusion_and_a_list_of_steps(tmp_path):
    path = tmp_path / "two.fir"
    path.write_text("fusion @a {\n  %x = input f32[4] contiguous\n  %y = exp %x\n  output %y\n}\n"
                    "fusion @b {\n  %x = input f32[4] contiguous\n  %y = sin %x\n  output %y\n}\n"
                    "steps @b {\n  split %y.i0 by 2 -> o, t\n}\n")
    assert "sin" in fusebox.load(path, "b").to_string() and fusebox.load(path, "b").program.step_lines() != []
    assert error_of(lambda: fusebox.load(path, "c")).code == "E0102"
    assert error_of(lambda: fusebox.load(path, "b", steps="none")).code == "E0102"
    damaged = tmp_path / "damaged.fuse"
    damaged.write_bytes(b"not a bundle")
    assert error_of(lambda: fusebox.load(damaged)).code == "E0110"
    (tmp_path / "bad.fir").write_text("fusion @a {\n  %y = nothing %x\n}\n")
    assert error_of(lambda: fusebox.load(tmp_path / "bad.fir")).code == "E0201"


def test_a_loaded_program_overwrites_its_inputs(tmp_path):
    path = tmp_path / "in_place.fir"
    path.write_text("fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = add %x, %x\n  output %y alias %x\n}\n")
    fd = fusebox.load(path)
    x = torch.ones(5)
    version = x._version
    assert fd.execute([x]) == [] and torch.equal(x, torch.full((5,), 2.0)) and x._version > version


@pytest.mark.parametrize("given", [torch.ones(4, 1).expand(4, 3), torch.ones(0, 1).expand(0, 3), torch.arange(6.0).unfold(0, 3, 1)])
def test_references_of_inputs_that_overlap_themselves(given):
    fd = FusionDefinition()
    fd.add_output(fd.ops.add(fd.from_pytorch(given, static_sizes=True), 1.0))
    fd.execute([given])
    fd.validate([given], [given + 1])
    if given.numel() > 0:
        with pytest.raises(AssertionError):
            fd.validate([given], [given])


def test_references_leave_inputs_that_are_overwritten_alone():
    fd = FusionDefinition()
    x = fd.define_tensor([4], contiguity=False)
    fd.add_output(fd.ops.add(x, 1.0), alias_input=x)
    memory = torch.zeros(8)
    fd.validate([memory[::2]], [])
    assert torch.equal(memory, torch.zeros(8))


@pytest.mark.parametrize("other", [torch.zeros(4), torch.zeros(6)[:4]])
def test_record_refuses_an_input_whose_data_was_set(tmp_path, other):
    fd = FusionDefinition()
    fd.add_output(fd.ops.neg(fd.define_tensor([-1])))
    x = torch.ones(4)
    fd.execute([x])
    fd.record(tmp_path / "a.fuse")
    x.data = other
    assert error_of(lambda: fd.record(tmp_path / "b.fuse")).code == "E0402"
    fd.execute([x])
    x.data = x.data[:3]  # the same memory, another shape
    assert error_of(lambda: fd.record(tmp_path / "b.fuse")).code == "E0402"
    assert not (tmp_path / "b.fuse").exists()


def test_global_memory_has_nvfusers_name_too():
    for kind in (fusebox.MemoryType, fusebox.CacheOp):
        assert getattr(kind, "global") is kind["global"] is kind.global_ is kind("global")
        assert kind.global_.name == "global_" and [m.name for m in kind].count("global_") == 1


def test_cuda_source_has_each_kernel_by_name():
    fd = scaled()
    (text,) = fd.cuda_source([torch.randn(3, 5)]).values()
    assert "__global__" in text and "fusebox_kernel" in text
    assert fd.cuda_source([torch.empty(3, 5, device="meta")]) == fd.cuda_source([torch.randn(3, 5)])
    assert fd.plan([torch.empty(3, 5, device="meta")]) == fd.plan([torch.randn(3, 5)])
    unfused = FusionDefinition(unfused=True)
    x = unfused.define_tensor([-1], True, DataType.Float)
    unfused.add_output(unfused.ops.exp(unfused.ops.sin(x)))
    assert len(unfused.cuda_source([torch.randn(4)])) == 2
    assert error_of(lambda: fd.cuda_source([torch.randn(3)])).code == "E0401"


def test_scheduled_text_shows_loops_and_reads_back():
    fd = scaled()
    before = fd.scheduled_text()
    assert "grid.x" in before and "block.x" in before
    after = fd.scheduled_text([torch.randn(3, 5)])
    assert "grid.x" in after and after.startswith("scheduled @scaled {")
    assert _fusebox.Program.of_text(fd.to_string(), "", "").text() == fd.to_string()
    bad = FusionDefinition()
    x = bad.define_tensor([-1], True, DataType.Float)
    y = bad.ops.exp(bad.ops.sin(x))
    bad.add_output(y)
    bad.sched.parallelize(y, 0, ParallelType.grid_x)
    given = [torch.randn(4)]
    assert error_of(lambda: bad.scheduled_text(given)).code == error_of(lambda: bad.execute(given)).code


# -- profiles


def test_a_profile_counts_and_measures():
    fd = scaled()
    profile = fd.profile([torch.randn(3, 5)], runs=4)
    assert (profile.name, profile.executor, profile.gpu, profile.runs, profile.launches) == ("scaled", "host", None, 4, 1)
    assert (profile.read_bytes, profile.written_bytes, profile.moved_bytes) == (60, 60, 120)
    assert profile.floor_us is None and profile.fraction is None and profile.copy_gb_s is None and profile.empty_us is None
    assert len(profile.kernels) == 1 and profile.kernels[0].launches == 1
    for spread in (profile.whole_us, profile.kernels_us, profile.host_us, profile.kernels[0].us):
        assert 0 <= spread.p10 <= spread.median <= spread.p90
    text = repr(profile)
    assert text == str(profile) and text.startswith("@scaled on host: 4 runs, by the wall clock") and "no GPU was measured" in text
    assert "120 bytes: 60 bytes read, 60 bytes written" in text
    assert error_of(lambda: fd.profile([torch.randn(3, 5)], runs=0)).code == "E0440"
    assert error_of(lambda: fd.profile([torch.randn(3)])).code == "E0401"


def test_a_profile_does_not_write_inputs():
    fd = FusionDefinition()
    x = fd.define_tensor([-1], True, DataType.Float)
    fd.add_output(fd.ops.add(x, 1.0), x)
    given = torch.zeros(7)
    assert fd.profile([given], runs=3).written_bytes == 28
    assert torch.equal(given, torch.zeros(7))


def test_a_profile_knows_segments_by_aten():
    fd = FusionDefinition.from_text((SHARED / "aten_and_kernel.fir").read_text())
    profile = fd.profile([torch.randn(9)], runs=2)
    assert [kernel.name for kernel in profile.kernels] == ["ATen first", "second"] and profile.launches == 2
    assert profile.moved_bytes == 72


# -- processes


def python(code, **environment):
    import os

    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **environment, "PYTHONPATH": ":".join(p for p in sys.path if p)})


RUN = """
fd = fusebox.FusionDefinition()
x = fd.define_tensor([-1])
fd.add_output(fd.ops.exp(x))
given = torch.randn(5)
fd.validate([given])
print(torch.allclose(fd.execute([given])[0], given.exp()))
"""


@pytest.mark.parametrize("order", ["import fusebox, torch", "import torch, fusebox", "import fusebox.strategies, fusebox, torch"])
def test_either_order_of_imports(order):
    run = python(order + RUN)
    assert run.returncode == 0 and run.stdout.strip() == "True", run.stderr


def test_replay_before_torch_is_imported(tmp_path):
    scaled().record(tmp_path / "b.fuse", [torch.randn(3, 5)])
    run = python(f"import fusebox; print(fusebox.replay({str(tmp_path / 'b.fuse')!r}).identical); import torch; print(torch.ones(2).sum().item())")
    assert run.returncode == 0 and run.stdout.split() == ["True", "2.0"], run.stderr


def test_the_package_loads_no_library_of_pytorch():
    run = python("import fusebox; print(*{l.split('/')[-1].strip() for l in open('/proc/self/maps') if '/libtorch' in l or '/libc10' in l or '/libfusebox_aten' in l})")
    assert run.returncode == 0 and run.stdout.split() == [], run.stdout


NVTX = """
#include <stdio.h>
int nvtxRangePushA(const char* name) { printf("push %s\\n", name); fflush(stdout); return 0; }
int nvtxRangePop(void) { printf("pop\\n"); fflush(stdout); return 0; }
"""


def compiler():
    import shutil

    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_nvtx_ranges_are_nested_and_named(tmp_path):
    from support import fusebox as command

    (tmp_path / "nvtx.c").write_text(NVTX)
    library = tmp_path / "libnvtx.so"
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", library, tmp_path / "nvtx.c"], check=True)
    import os

    run = command("run", PROGRAMS / "softmax.fir", "--on", "host", env={**os.environ, "FUSEBOX_NVTX": str(library)})
    words = [line for line in run.stdout.splitlines() if line.startswith(("push", "pop"))]
    assert run.returncode == 0 and "push softmax" in words
    depth = 0
    for word in words:
        depth += 1 if word.startswith("push") else -1
        assert depth >= 0
    assert depth == 0
    assert "push" not in command("run", PROGRAMS / "softmax.fir", "--on", "host").stdout


def test_a_missing_nvtx_library_is_said_once():
    import os

    from support import fusebox as command

    run = command("run", PROGRAMS / "softmax.fir", "--on", "host", "--unfused", env={**os.environ, "FUSEBOX_NVTX": "/no/such/library.so"})
    assert run.returncode == 0 and len(re.findall("FUSEBOX_NVTX is set", run.stderr)) == 1


# -- on a GPU

needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="no GPU is there")


def host_way(fd):
    """A fusion whose output is also an input: no call of it can be repeated without its host program."""
    x = fd.define_tensor([-1], True, DataType.Float)
    fd.add_output(fd.ops.mul(x, 2.0))
    fd.add_output(x)
    return fd


@needs_gpu
def test_the_slower_way_runs_on_the_current_stream_and_is_remembered():
    fd = host_way(FusionDefinition())
    x = torch.randn(1 << 16, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(3):
            torch.cuda._sleep(10_000_000)
            y = x + i  # after the sleep, on this stream
            doubled, same = fd.execute([y])
            assert torch.equal(doubled, 2 * y) and torch.equal(same, y)
    assert fd.program.needs_host_program() and fd.cache_info().kept == 0


@needs_gpu
def test_a_profile_on_a_gpu():
    fd = scaled()
    x = torch.randn(4096, 4096, device="cuda")
    profile = fd.profile([x], runs=5)
    assert profile.executor == "cuda" and profile.gpu == torch.cuda.get_device_name()
    assert profile.moved_bytes == 2 * 4096 * 4096 * 4
    assert profile.floor_us == pytest.approx(profile.moved_bytes / (1000 * profile.copy_gb_s))
    assert profile.fraction == pytest.approx(profile.floor_us / profile.whole_us.median)
    assert torch.equal(fd.execute([x])[0], 2 * x)


FAULT = """
import torch, fusebox
fd = fusebox.FusionDefinition("gather")
x = fd.define_tensor([-1], name="x")
i = fd.define_tensor([-1], dtype=fusebox.DataType.Int, name="i")
fd.add_output(fd.ops.index_select(x, i, 0))
given = [torch.randn(100, device="cuda"), torch.full((100,), 1 << 42, device="cuda")]
try:
    fd.execute(given)
    torch.cuda.synchronize()
except fusebox.FuseboxError as e:
    print(e.code, e.place, e.message)
except RuntimeError as e:
    print("late", e)
"""


@needs_gpu
def test_a_fault_with_debugging_names_the_kernel_and_leaves_a_bundle():
    run = python(FAULT, FUSEBOX_DEBUG="1")
    assert run.stdout.startswith("E0421 @"), run.stdout + run.stderr
    path = re.search(r"this bundle shows it: (\S+\.fuse)", run.stdout)[1]
    from support import fusebox as command

    replayed = command("replay", path, "--on", "cuda")
    assert replayed.returncode == 0 and "identical" in replayed.stdout, replayed.stdout + replayed.stderr
    found = command("run", path, "--on", "host", "--json")
    assert found.returncode in (1, 2) and "E04" in found.stdout
