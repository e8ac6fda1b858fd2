"""An internal error: exit code 3, and a bundle that reproduces it. A CUDA driver that fails at its first real call provokes one."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from support import BUILD, fusebox, twice, written

PROGRAM = twice(devices=("host", "gpu"))
COMPILER = shutil.which("c++") or shutil.which("g++")

# A GPU that can be queried but fails every other call: 999 is CUDA_ERROR_UNKNOWN.
DRIVER = r"""
#include <cstddef>
#include <cstring>
#define FAILS(name) extern "C" int name() { return 999; }
extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuGetErrorName(int, const char** s) { *s = "CUDA_ERROR_UNKNOWN"; return 0; }
int cuGetErrorString(int, const char** s) { *s = "the driver is broken"; return 0; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* d, int) { *d = 0; return 0; }
int cuDeviceGetName(char* s, int n, int) { std::strncpy(s, "broken", n); return 0; }
int cuDeviceGetAttribute(int* v, int which, int) { *v = which == 75 ? 8 : which == 76 ? 0 : 1024; return 0; }
int cuDeviceTotalMem_v2(size_t* n, int) { *n = size_t{1} << 30; return 0; }
int cuDevicePrimaryCtxRetain(void** c, int) { *c = reinterpret_cast<void*>(1); return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxGetCurrent(void** context) { *context = nullptr; return 0; }
}
FAILS(cuCtxSynchronize) FAILS(cuModuleLoadData) FAILS(cuModuleUnload) FAILS(cuModuleGetFunction) FAILS(cuFuncGetAttribute)
FAILS(cuFuncSetAttribute) FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor) FAILS(cuLaunchKernel)
FAILS(cuLaunchKernelEx) FAILS(cuLaunchCooperativeKernel) FAILS(cuMemAlloc_v2) FAILS(cuMemFree_v2) FAILS(cuMemcpyHtoDAsync_v2)
FAILS(cuMemcpyDtoHAsync_v2) FAILS(cuMemcpyDtoDAsync_v2) FAILS(cuMemsetD8Async) FAILS(cuStreamCreate) FAILS(cuStreamDestroy_v2)
FAILS(cuStreamSynchronize) FAILS(cuStreamIsCapturing) FAILS(cuStreamGetId) FAILS(cuThreadExchangeStreamCaptureMode)
FAILS(cuStreamGetCaptureInfo_v2) FAILS(cuUserObjectCreate) FAILS(cuUserObjectRelease) FAILS(cuGraphRetainUserObject)
FAILS(cuStreamWaitEvent) FAILS(cuEventCreate) FAILS(cuEventDestroy_v2) FAILS(cuEventRecord)
FAILS(cuEventSynchronize) FAILS(cuEventElapsedTime)
"""


@pytest.fixture
def program(tmp_path):
    return written(tmp_path, PROGRAM)


@pytest.fixture
def broken(tmp_path):
    """Runs the command line with a failing driver and a private folder for temporary files."""
    if not COMPILER or not (BUILD / "lib" / "libfusebox_cuda.so").exists():
        pytest.skip("no compiler, or built without CUDA")
    source = tmp_path / "driver.cc"
    source.write_text(DRIVER)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "TMPDIR": str(folder)}

    def run(*arguments):
        ran = fusebox(*arguments, timeout=120, env=environment)
        if "E0423" in ran.stdout + ran.stderr:
            pytest.skip("no NVRTC")
        return ran

    run.folder = folder
    return run


def test_an_internal_error_leaves_a_bundle_that_reproduces_it(broken, program):
    ran = broken("run", program, "--on", "cuda", "--json")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    (path,) = [line["reproducer"] for line in lines if "reproducer" in line]
    assert pathlib.Path(path).parent == broken.folder
    assert "E0421" in ran.stdout
    # The bundle records the failure, and the replay repeats it.
    replayed = broken("replay", path, "--on", "cuda", "--json")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert json.loads(replayed.stdout.splitlines()[0])["identical"] is True
    shown = broken("show", path, "--level", "math")
    assert shown.returncode == 0 and "@twice" in shown.stdout


def test_a_recorded_internal_error_is_written_where_it_was_asked_for(broken, program, tmp_path):
    path = tmp_path / "it.fuse"
    ran = broken("run", program, "--on", "cuda", "--record", path)
    assert ran.returncode == 3 and path.exists()
    assert not list(broken.folder.iterdir())


def test_cuda_text_is_not_replayed_on_the_host(broken, program, tmp_path):
    path = tmp_path / "it.fuse"
    assert broken("run", program, "--on", "host", "--record", path).returncode == 0
    untrusted = broken("replay", path, "--from", "source", "--on", "host", "--json")
    assert untrusted.returncode == 2 and json.loads(untrusted.stdout)["error"]["code"] == "E0441"
    trusted = broken("replay", path, "--from", "source", "--on", "host", "--trust-artifacts", "--json")
    error = json.loads(trusted.stdout)["error"]
    assert trusted.returncode == 2 and error["code"] == "E0440" and "--on cuda" in error["message"]
