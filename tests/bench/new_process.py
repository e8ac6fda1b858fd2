"""Times the first call of a program in a new process, with an empty cache and with its record on disk, and `fusebox run` of a cached program.

    PYTHONPATH=build/python python3 tests/bench/new_process.py [--rounds 5] [--fusebox build/bin/fusebox]

Needs a GPU and takes about a minute. Each process imports torch and makes its CUDA context and its inputs before the clock starts, and stops
it when `execute` returns, which is when the last kernel was launched. In the cold process NVRTC is loaded before, by another program. The command
line's time is that of its whole process, less the time that a process takes to make and release a CUDA context. Every figure is a median.
Exit code 1 if one is over its bar."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The same program and sizes for the command line, so that its time is not that of making and reading large tensors.
PROGRAM = """
fusion @softmax {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %mx = max %x over [1]
  %mb = broadcast %mx mask [0, 1]
  %d = sub %x, %mb
  %e = exp %d
  %s = sum %e over [1]
  %sb = broadcast %s mask [0, 1]
  %y = truediv %e, %sb
  output %y
}
inputs @softmax gpu {
  %x = f32[512, 1024] normal seed 1
}
"""

CALL = """
import sys, time
import torch
from fusebox import FusionDefinition

def softmax(name):
    fd = FusionDefinition(name)
    x = fd.define_tensor([-1, -1])
    e = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    fd.add_output(fd.ops.truediv(e, fd.ops.sum(e, [1], keepdim=True)))
    return fd

if sys.argv[1] == "cold":  # loads NVRTC
    other = FusionDefinition("other")
    y = other.define_tensor([-1])
    other.add_output(other.ops.neg(y))
    other.execute([torch.ones(8, device="cuda")])
fd = softmax("softmax")
x = torch.randn(512, 1024, device="cuda")
torch.cuda.synchronize()
began = time.perf_counter()
(y,) = fd.execute([x])
took = time.perf_counter() - began
torch.testing.assert_close(y, torch.softmax(x, 1))
info = fd.cache_info()
assert (info.disk_hits, info.disk_misses) == ((1, 0) if sys.argv[1] == "disk" else (0, 1)), info
print(1e3 * took)
"""

CONTEXT = """
import ctypes, time
driver = ctypes.CDLL("libcuda.so.1")
began = time.perf_counter()
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
print(1e3 * (time.perf_counter() - began))
"""


def output_ms(code, *arguments, **variables):
    done = subprocess.run([sys.executable, "-c", code, *arguments], env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"new_process: a process failed\n{done.stderr}")
    return float(done.stdout.split()[-1])


def wall_ms(command, **variables):
    began = time.perf_counter()
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
    took = 1e3 * (time.perf_counter() - began)
    if done.returncode != 0:
        raise SystemExit(f"new_process: {' '.join(map(str, command))} failed\n{done.stderr}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fusebox", type=pathlib.Path, default=ROOT / "build" / "bin" / "fusebox")
    a = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("new_process: no GPU is there")
    cold, disk, run, context = [], [], [], []
    for _ in range(a.rounds):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(output_ms(CALL, "cold", FUSEBOX_CACHE_DIR=folder))
            disk.append(output_ms(CALL, "disk", FUSEBOX_CACHE_DIR=folder))
            program = pathlib.Path(folder) / "softmax.fir"
            program.write_text(PROGRAM)
            command = [a.fusebox, "run", program, "--on", "cuda"]
            wall_ms(command, FUSEBOX_CACHE_DIR=folder)
            run.append(wall_ms([*command, "--cache-only"], FUSEBOX_CACHE_DIR=folder))
            context.append(output_ms(CONTEXT))
    figures = (
        ("call in a new process, NVRTC loaded, nothing cached", statistics.median(cold), 150.0),
        ("call in a new process, record on disk", statistics.median(disk), 5.0),
        ("`fusebox run --cache-only`, less the context", statistics.median(run) - statistics.median(context), 40.0),
    )
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; median of {a.rounds} processes each, a context takes {statistics.median(context):.0f} ms")
    for what, took, bar in figures:
        print(f"  {what:<52} {took:>8.2f} ms of {bar:>5.0f}" + ("" if took <= bar else "  over"))
    return 0 if all(took <= bar for _, took, bar in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
