"""Times a call of a fusion from Python beside PyTorch's own: host time of a call that is repeated, and with the GPU's work.

    PYTHONPATH=build/python python3 tests/bench/call_cost.py [--calls 2000]

Each row is the sum of N tensors of 1,024 elements in one kernel, so that the host decides. `eager` adds them one by one; `compile` is
torch.compile's function; `empty` is torch.empty of one output, which every call needs. Every figure is the median of 11 rounds that
alternate; each round makes --calls calls and waits for the GPU once, at its end, outside the time.
"""

import argparse
import statistics
import time

import torch

from fusebox import DataType, FusionDefinition, ParallelType


def scheduled_sum(count):
    """The sum of `count` tensors as one kernel."""
    fd = FusionDefinition()
    xs = [fd.define_tensor([-1], True, DataType.Float) for _ in range(count)]
    y = xs[0]
    for x in xs[1:]:
        y = fd.ops.add(y, x)
    if count == 1:
        y = fd.ops.exp(y)
    fd.add_output(y)
    fd.sched.split(y, 0, 128)
    fd.sched.transform_like(y)
    fd.sched.parallelize(y, 0, ParallelType.grid_x)
    fd.sched.parallelize(y, 1, ParallelType.block_x)
    fd.sched.parallelize_like(y)
    fd.sched.inline_most()
    return fd


def eager_sum(*xs):
    y = xs[0]
    for x in xs[1:]:
        y = y + x
    return y.exp() if len(xs) == 1 else y


def per_call_us(function, calls):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        function()
    issued = time.perf_counter()
    torch.cuda.synchronize()
    return 1e6 * (issued - began) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    a = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("call_cost: no GPU is there")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; host time of one call in µs, median of 11 rounds")
    print(f"{'tensors':>8} {'fusebox':>9} {'eager':>9} {'compile':>9} {'empty':>9}")
    for count in (1, 2, 3, 4, 8, 32):
        xs = [torch.randn(1024, device="cuda") for _ in range(count)]
        fd = scheduled_sum(count)
        compiled = torch.compile(eager_sum)
        torch.testing.assert_close(fd.execute(xs)[0], eager_sum(*xs))
        torch.testing.assert_close(compiled(*xs), eager_sum(*xs))
        rows = {
            "fusebox": lambda xs=xs, fd=fd: fd.execute(xs),
            "eager": lambda xs=xs: eager_sum(*xs),
            "compile": lambda xs=xs, compiled=compiled: compiled(*xs),
            "empty": lambda: torch.empty(1024, device="cuda"),
        }
        times = {name: [] for name in rows}
        for _ in range(11):
            for name, function in rows.items():
                times[name].append(per_call_us(function, a.calls if name != "eager" or count < 8 else a.calls // 4))
        print(f"{count:>8} " + " ".join(f"{statistics.median(times[name]):>9.2f}" for name in rows))


if __name__ == "__main__":
    main()
