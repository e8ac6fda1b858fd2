"""The wheel, built by pip and installed into an empty environment, runs, validates, records and replays, and has the command line. The
source tree is out of reach."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-wheel"
LIBRARIES = ["libfusebox_aten.so", "libfusebox_cuda.so"]

pytestmark = pytest.mark.skipif(
    os.environ.get("FUSEBOX_WHEEL_TEST") == "0", reason="FUSEBOX_WHEEL_TEST is 0: the wheel is not built")


def run(*command, **options):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=1800, check=False, **options)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


def cached():
    """Settings that make the compiler's command lines equal those of `./dev build`, so that ccache has most results."""
    cache = ROOT / "build" / "CMakeCache.txt"
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
    return {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", **({"CXX": found[1]} if found else {})}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("pip")
    if shutil.which("ninja") is None:
        pytest.skip("no Ninja here")
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, ROOT,
        env={**os.environ, **cached()})
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment outside the build with the wheel, and with PyTorch and NumPy from this Python's environment."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    packages = pathlib.Path(run(folder / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    import numpy
    import torch

    found = {str(pathlib.Path(p.__file__).parents[1]) for p in (numpy, torch)} | {sysconfig.get_path("purelib")}
    (packages / "installed_pytorch.pth").write_text("\n".join(sorted(found)) + "\n")
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    hidden = BUILD.with_name("build-wheel.away")
    if BUILD.exists():
        BUILD.rename(hidden)
    yield folder
    if hidden.exists():
        hidden.rename(BUILD)


@pytest.fixture
def alone(environment, tmp_path):
    """Runs a program of the environment in an empty folder, without variables that point elsewhere."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "FUSEBOX", "LD_", "VIRTUAL_ENV")) and name != "PATH"}
    options = {"cwd": tmp_path, "env": {**kept, "PATH": f"{environment / 'bin'}:/usr/bin:/bin"}}
    return lambda *command: run(*command, **options)


def test_where_there_is_no_pytorch_the_build_asks_for_one(tmp_path):
    pytest.importorskip("scikit_build_core")
    program = "import wheel_backend; print(wheel_backend.get_requires_for_build_wheel())"
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path)
    paths = {"PYTHONPATH": f"{ROOT / '.cmake'}:{sysconfig.get_path('purelib')}"}
    assert "torch>=" in run(tmp_path / "bin" / "python", "-c", program, cwd=ROOT, env={**os.environ, **paths})
    has_torch = subprocess.run([sys.executable, "-I", "-c", "import torch"], check=False).returncode == 0
    assert ("torch>=" in run(sys.executable, "-c", program, cwd=ROOT, env={**os.environ, **paths})) != has_torch


def test_a_wheel_with_a_part_missing_is_refused(tmp_path):
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DFUSEBOX_TESTS=OFF", "-DFUSEBOX_WHEEL=ON", "-DFUSEBOX_ATEN=OFF"]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode != 0 and "the wheel needs pybind11 and PyTorch" in result.stderr


def test_it_holds_everything(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    package = ROOT / "replay" / "python" / "fusebox"
    sources = [f for f in package.rglob("*") if f.suffix in (".py", ".pyi") or f.name == "py.typed"]
    wanted = [f"fusebox/{f.relative_to(package).as_posix()}" for f in sources]
    assert {"fusebox/py.typed", "fusebox/_fusebox.pyi", "fusebox/__main__.py"} <= set(wanted)
    for name in [*wanted, "fusebox/bin/fusebox", *(f"fusebox/{name}" for name in LIBRARIES)]:
        assert name in names, names
    assert any(name.startswith("fusebox/_fusebox.") for name in names)
    entries = [name for name in names if name.endswith("entry_points.txt")]
    assert "fusebox.command_line:main" in zipfile.ZipFile(wheel).read(entries[0]).decode()


def test_nothing_leads_to_the_build(environment):
    (package,) = environment.glob("lib/python*/site-packages/fusebox")
    files = [f for f in [*package.rglob("*"), environment / "bin" / "fusebox"] if f.is_file() and f.suffix != ".pyc"]
    assert not [f for f in files if f.is_symlink()]
    # PyTorch's folder, which may lie below ROOT, is no folder of the build, but a wheel does not name it either.
    assert not [f for f in files if os.fsencode(ROOT) in f.read_bytes()]
    assert any(f.suffix == ".so" for f in files)


# Either of the two may be imported first.
@pytest.mark.parametrize("modules", ["fusebox, torch", "torch, fusebox"])
def test_python(alone, modules):
    program = textwrap.dedent(f"""
        import json, pathlib, sys
        import {modules}
        with fusebox.FusionDefinition("softmax") as fd:
            x = fd.define_tensor([-1, -1], name="x")
            e = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
            fd.add_output(fd.ops.truediv(e, fd.ops.sum(e, [1], keepdim=True)))
        x = torch.randn(5, 33)
        (y,) = fd.execute([x])
        torch.testing.assert_close(y, torch.softmax(x, 1))
        fd.validate([x])
        fd.record("softmax.fuse")
        assert fusebox.replay("softmax.fuse").identical
        print(json.dumps([fusebox.__file__, *sys.path]))
    """)
    loaded = json.loads(alone("python", "-c", program))
    assert not any(path.startswith(str(ROOT / "build")) or path.startswith(str(ROOT / "replay")) for path in loaded)


def test_the_reference_is_found_before_pytorch_is_imported(alone):
    program = textwrap.dedent("""
        import sys
        import fusebox
        fd = fusebox.FusionDefinition.from_text("fusion @f {\\n  %n = size\\n  %x = input f32[%n]\\n  %y = exp %x\\n  output %y\\n}")
        assert "torch" not in sys.modules
        import torch
        x = torch.ones(5)
        fd.execute([x])
        fd.validate([x])
        fd.record("f.fuse")
    """)
    alone("python", "-c", program)
    replays = "import sys, fusebox; assert 'torch' not in sys.modules; print(fusebox.replay('f.fuse', on='aten').executor)"
    assert alone("python", "-c", replays) == "aten\n"


@pytest.mark.parametrize("command", [("fusebox",), ("python", "-m", "fusebox")])
def test_command_line(alone, tmp_path, command):
    def fusebox(*arguments):
        return alone(*command, *arguments)

    for name in "softmax.fir", "swizzled_copy_1d.fir":
        shutil.copy(ROOT / "corpus" / "programs" / name, tmp_path)
    assert "agrees with ATen" in fusebox("run", "softmax.fir", "--on", "host", "--check", "--record", "softmax.fuse")
    assert "replay: identical" in fusebox("replay", "softmax.fuse")
    assert "softmax" in fusebox("show", "softmax.fir", "--level", "cuda")
    assert "theorem" in fusebox("explain", "swizzled_copy_1d.fir", "%y.f", "%y.b")
    assert json.loads(fusebox("fuzz", "--runs", "50", "--json").splitlines()[-1])["compared"] > 0
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", fusebox("--version"))
    text = fusebox("--help")
    commands = re.findall(r"^  ([a-z]+) ", text, re.M)
    assert {"run", "replay", "fuzz", "reduce"} <= set(commands)
    for said in [text, *(fusebox(name, "--help") for name in commands)]:
        assert "build/" not in said and str(ROOT) not in said


def test_the_cuda_module_is_found(alone, tmp_path):
    shutil.copy(ROOT / "corpus" / "programs" / "softmax.fir", tmp_path)
    program = "import subprocess as s; print(s.run(['fusebox', 'run', 'softmax.fir', '--on', 'cuda', '--json'], capture_output=True, text=True).stdout)"
    answer = json.loads(alone("python", "-c", program).split("\n")[0])
    # Without a GPU, the error is about the GPU, not about the module.
    assert "error" not in answer or answer["error"]["code"] == "E0420", answer
