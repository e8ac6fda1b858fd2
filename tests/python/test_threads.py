"""Calls from several threads: one program is planned once for each signature, every result is right, and memory does not grow.

FUSEBOX_CALLS sets how many calls the memory test makes (default 3,000; the long run is 100,000)."""

import gc
import itertools
import os
import threading

import pytest
import torch

from fusebox import DataType, FuseboxError, FusionDefinition, ParallelType

NUMBERS = itertools.count()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")),
]


def shifted_sum(name: str | None = None) -> FusionDefinition:
    """y = x + row sums of x * scale. Without a name, one that no other definition has: equal definitions share their plans."""
    fd = FusionDefinition(name or f"shifted_sum_{next(NUMBERS)}")
    x = fd.define_tensor([-1, -1], True, DataType.Float, name="x")
    scale = fd.define_scalar(DataType.Float, name="scale")
    fd.add_output(fd.ops.add(x, fd.ops.mul(fd.ops.sum(x, [1], keepdim=True), scale)))
    return fd


def in_threads(count, work):
    """Runs work(0), work(1), … at the same time. Raises the first error."""
    errors = []
    start = threading.Barrier(count)

    def guarded(k):
        try:
            start.wait()
            work(k)
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("device", DEVICES)
def test_a_thousand_calls_of_a_hundred_signatures_from_eight_threads(device):
    fd = shifted_sum()
    shapes = [(1 + 3 * i % 37, 1 + 7 * i % 101) for i in range(100)]
    assert len(set(shapes)) == 100
    # Small integers, so that sums are exact in any order.
    inputs = [torch.randint(-8, 8, s, generator=torch.Generator().manual_seed(i)).float().to(device) for i, s in enumerate(shapes)]
    expected = [x + x.sum(1, keepdim=True) * 2.0 for x in inputs]

    def work(k):
        for n in range(125):
            i = (k * 13 + n * 29) % 100
            (y,) = fd.execute([inputs[i], 2.0])
            assert torch.equal(y, expected[i]), (k, shapes[i])

    in_threads(8, work)
    info = fd.cache_info()
    # The classes of the sizes differ, so each has a plan, which was made once.
    assert info.plans_made == 100, info
    assert len(info.recompiles) == 32


@pytest.mark.parametrize("device", DEVICES)
def test_threads_that_miss_together_plan_once(device):
    x = torch.randint(-8, 8, (64, 96)).float().to(device)
    for _ in range(5):
        fd = shifted_sum()
        results = [None] * 8

        def work(k, fd=fd, results=results):
            results[k] = fd.execute([x, 1.0])[0]

        in_threads(8, work)
        assert fd.cache_info().plans_made == 1, fd.cache_info()
        assert all(torch.equal(r, x + x.sum(1, keepdim=True)) for r in results)


@pytest.mark.parametrize("device", DEVICES)
def test_equal_definitions_share_their_plans(device):
    x = torch.randint(-8, 8, (64, 96)).float().to(device)
    wanted = x + x.sum(1, keepdim=True)
    name = f"shared_{device}"
    first, second, renamed, scheduled = shifted_sum(name), shifted_sum(name), shifted_sum(name + "_too"), shifted_sum(name)
    assert torch.equal(first.execute([x, 1.0])[0], wanted)
    assert (first.cache_info().plans_made, first.cache_info().plans_shared) == (1, 0)
    # With other values of the scalar, which is no part of a plan.
    assert torch.equal(second.execute([x, 2.0])[0], x + 2.0 * x.sum(1, keepdim=True))
    assert (second.cache_info().plans_made, second.cache_info().plans_shared) == (0, 1) and second.cache_info().recompiles == ()
    assert torch.equal(renamed.execute([x, 1.0])[0], wanted) and renamed.cache_info().plans_made == 1, "errors carry its name"
    scheduled.program.set_unfused(True)
    assert torch.equal(scheduled.execute([x, 1.0])[0], wanted) and scheduled.cache_info().plans_made == 1, "another plan"
    # A plan outlives the definition that made it.
    del first
    gc.collect()
    third = shifted_sum(name)
    assert torch.equal(third.execute([x, 1.0])[0], wanted) and third.cache_info().plans_made == 0

    # Definitions of several threads make a plan of one signature once.
    results, definitions = [None] * 8, [shifted_sum(name + "_threads") for _ in range(8)]

    def work(k):
        results[k] = definitions[k].execute([x, 1.0])[0]

    in_threads(8, work)
    assert sum(fd.cache_info().plans_made for fd in definitions) == 1
    assert all(torch.equal(r, wanted) for r in results)


def resident_bytes() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("device", DEVICES)
def test_memory_does_not_grow_with_calls(device):
    calls = int(os.environ.get("FUSEBOX_CALLS", "3000"))
    fd = shifted_sum()
    xs = [torch.ones(2 + i, 8 + i % 3, device=device) for i in range(10)]

    def run(count):
        for n in range(count):
            fd.execute([xs[n % len(xs)], 0.5])
        if device == "cuda":
            torch.cuda.synchronize()
        gc.collect()

    run(max(calls // 4, 200))
    before, kept = resident_bytes(), fd.cache_info()[2]
    on_gpu = torch.cuda.memory_allocated() if device == "cuda" else 0
    run(calls)
    grown = resident_bytes() - before
    # The allocator's own pages come and go; a leak of 100 bytes a call is over this in the long run.
    assert grown < (4 << 20) + 50 * calls, f"{grown} bytes more after {calls} calls"
    assert fd.cache_info()[2] == kept
    if device == "cuda":
        assert torch.cuda.memory_allocated() == on_gpu


def test_a_miss_says_which_part_of_the_inputs_differed(capfd, monkeypatch):
    monkeypatch.setenv("FUSEBOX_LOG", "cache,recompiles")
    fd = shifted_sum("logged_sum")
    fd.execute([torch.ones(64, 96), 1.0])
    fd.execute([torch.ones(64, 96), 2.0])
    fd.execute([torch.ones(64, 95), 1.0])
    fd.execute([torch.ones(640, 95), 1.0])
    reasons = ("the first call", "%x.1: divisible by 1, was 32", "%x.0: up to 640, was up to 64")
    info = fd.cache_info()
    assert info.recompiles == reasons and info.plans_made == 3
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("fusebox: recompiles: ")]
    assert lines == [f"fusebox: recompiles: @logged_sum for the host: {r}" for r in reasons]


def test_a_failed_assumption_of_a_step_is_a_coded_error_and_of_the_automatic_plan_a_new_plan():
    fd = FusionDefinition("assumed")
    t = fd.define_tensor([-1, -1], True, DataType.Float)
    y = fd.ops.neg(t)
    fd.add_output(y)
    fd.sched.assume(fd.ops.shape(t)[1], multiple_of=4)
    y.split(1, 4)
    y.parallelize(0, ParallelType.block_x)
    ok = torch.ones(3, 8)
    assert fd.execute([ok])[0].shape == (3, 8)
    for _ in range(2):
        with pytest.raises(FuseboxError) as refused:
            fd.execute([torch.ones(3, 9)])
        assert refused.value.code == "E0409"
    assert torch.equal(fd.execute([ok])[0], fd.execute([torch.ones(5, 8)])[0][:3])
    assert fd.cache_info().plans_made == 1

    automatic = shifted_sum()
    for columns in (512, 511, 513, 8, 1):
        x = torch.randint(-4, 4, (5, columns)).float()
        assert torch.equal(automatic.execute([x, 1.0])[0], x + x.sum(1, keepdim=True))
    assert automatic.cache_info().plans_made > 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")
def test_two_streams_and_a_captured_graph_give_the_bits_of_one_call():
    # The sum of all is one of many blocks, which count their arrivals; the scaled tensor crosses from kernel to kernel.
    fd = FusionDefinition("normalized")
    x = fd.define_tensor([-1, -1], True, DataType.Float)
    scale = fd.define_scalar(DataType.Float)
    y = fd.ops.mul(x, scale)
    fd.add_output(fd.ops.truediv(y, fd.ops.sum(fd.ops.abs(y), [0, 1], keepdim=True)))
    inputs = [torch.randn(1024, 1024 + 32 * i, device="cuda", generator=torch.Generator("cuda").manual_seed(i)) for i in range(2)]
    scales = [0.5, 2.0]
    alone = [fd.execute([a, s])[0].clone() for a, s in zip(inputs, scales)]
    torch.cuda.synchronize()

    streams = [torch.cuda.Stream() for _ in range(2)]
    results = [[], []]
    for _ in range(50):
        for i in (0, 1):
            with torch.cuda.stream(streams[i]):
                results[i].append(fd.execute([inputs[i], scales[i]])[0])
    torch.cuda.synchronize()
    for i in (0, 1):
        assert all(torch.equal(r, alone[i]) for r in results[i])

    def work(k):
        with torch.cuda.stream(streams[k]):
            mine = [fd.execute([inputs[k], scales[k]])[0] for _ in range(50)]
        streams[k].synchronize()
        assert all(torch.equal(r, alone[k]) for r in mine)

    in_threads(2, work)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (captured,) = fd.execute([inputs[0], scales[0]])
    for _ in range(10):
        captured.zero_()
        graph.replay()
        with torch.cuda.stream(streams[1]):
            beside = fd.execute([inputs[1], scales[1]])[0]
        torch.cuda.synchronize()
        assert torch.equal(captured, alone[0]) and torch.equal(beside, alone[1])


def test_products_on_a_cpu_leave_the_options_of_cublas_alone():
    """The options belong to the process: another thread's products would take them."""
    fd = FusionDefinition()
    a, b = (fd.define_tensor([-1, -1], True, DataType.Float) for _ in range(2))
    fd.add_output(fd.ops.matmul(a, b))
    x = torch.randn(96, 96)
    fd.execute([x, x])
    before = torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    ended = threading.Event()

    def multiply():
        for _ in range(60):
            fd.execute([x, x])

    def wait():
        for t in threads:
            t.join()
        ended.set()

    threads = [threading.Thread(target=multiply) for _ in range(2)]
    for t in threads:
        t.start()
    waiter = threading.Thread(target=wait)
    waiter.start()
    # On a busy machine they may have ended before this thread looks.
    seen = {torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction}
    while not ended.is_set():
        seen.add(torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction)
    waiter.join()
    assert seen == {before}
    assert torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction == before
