"""Calls on a GPU that are repeated without planning: the same results as a first call, whatever changes from call to call."""

import threading

import pytest
import torch

import fusebox
from fusebox import DataType, FusionDefinition, ParallelType

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")


def scaled_sum():
    """y = exp(x) + eps * row sums of x, with a kernel for each op."""
    fd = FusionDefinition()
    x = fd.define_tensor([-1, -1], True, DataType.Float)
    eps = fd.define_scalar(DataType.Float)
    s = fd.ops.sum(x, [1], keepdim=True)
    fd.add_output(fd.ops.add(fd.ops.exp(x), fd.ops.mul(s, eps)))
    return fd


def expected(x, eps):
    return x.exp() + eps * x.sum(1, keepdim=True)


def near(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_repeated_calls_hit_and_give_the_same_bits():
    fd = scaled_sum()
    x = torch.randn(7, 33, device="cuda")
    first = fd.execute([x, 0.5])[0]
    near(first, expected(x, 0.5))
    for _ in range(3):
        assert torch.equal(fd.execute([x, 0.5])[0], first)
    assert fd.cache_info()[:3] == (4, 0, 1)


def test_new_scalars_hit_and_new_sizes_share_the_kernels():
    fd = scaled_sum()
    for n, eps in ((33, 0.5), (33, 2.0), (5, -1.0), (64, 0.25), (33, 3)):
        x = torch.randn(7, n, device="cuda")
        near(fd.execute([x, eps])[0], expected(x, eps))
    assert fd.cache_info().kept == 3


def test_outputs_are_in_the_programs_order():
    fd = FusionDefinition()
    x = fd.define_tensor([-1, -1], True, DataType.Float)
    y = fd.ops.exp(x)
    fd.add_output(fd.ops.sum(y, [1]))
    fd.add_output(y)
    given = torch.randn(7, 33, device="cuda")
    for _ in range(2):
        total, every = fd.execute([given])
        near(every, given.exp())
        near(total, given.exp().sum(1))


def test_empty_and_misaligned_tensors():
    fd = scaled_sum()
    base = torch.randn(1 + 7 * 33, device="cuda")
    x = base[1:].view(7, 33)
    near(fd.execute([x, 0.5])[0], expected(x, 0.5))
    near(fd.execute([x, 0.5])[0], expected(x, 0.5))
    empty = torch.randn(0, 33, device="cuda")
    for _ in range(2):
        assert fd.execute([empty, 0.5])[0].shape == (0, 33)


def test_a_wrong_input_after_a_hit_is_refused():
    fd = scaled_sum()
    x = torch.randn(7, 33, device="cuda")
    fd.execute([x, 0.5])
    for bad in ([x.double(), 0.5], [x], [x.t(), 0.5], [x[0], 0.5]):
        with pytest.raises(fusebox.FuseboxError):
            fd.execute(bad)
    near(fd.execute([x, 0.5])[0], expected(x, 0.5))


def test_steps_taken_after_a_call_count():
    fd = FusionDefinition()
    x = fd.define_tensor([-1], True, DataType.Float)
    y = fd.ops.exp(x)
    fd.add_output(y)
    given = torch.randn(1000, device="cuda")
    near(fd.execute([given])[0], given.exp())
    fd.sched.split(y, 0, 128)
    fd.sched.parallelize(y, 1, ParallelType.block_x)
    near(fd.execute([given])[0], given.exp())
    assert fd.cache_info().kept == 1


def test_in_place_outputs_write_the_input_and_its_version():
    fd = FusionDefinition()
    x = fd.define_tensor([-1], True, DataType.Float)
    fd.add_output(fd.ops.add(x, fd.define_scalar(1.0, DataType.Float)), x)
    given = torch.zeros(100, device="cuda")
    for i in range(1, 4):
        version = given._version
        assert fd.execute([given]) == []
        assert torch.equal(given, torch.full_like(given, i)) and given._version > version


def called_once(*shape):
    fd = scaled_sum()
    x = torch.randn(*shape, device="cuda")
    fd.execute([x, 0.5])
    return fd, x


def test_the_current_stream_is_used():
    fd, x = called_once(512, 512)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(400_000_000)
        x2 = x * 2  # after the sleep, on this stream
        out = fd.execute([x2, 0.5])[0]
        done = torch.cuda.Event()
        done.record()
    assert not done.query()  # nothing waited for the stream
    stream.synchronize()
    wide = x.double() * 2
    # A sum may be off by a few last places of the sum of its magnitudes, whatever is left of it.
    bound = 1e-5 * expected(wide, 0.5).abs() + 2**-21 * (wide.exp() + 0.5 * wide.abs().sum(1, keepdim=True))
    assert ((out - expected(wide, 0.5)).abs() <= bound).all()


def test_a_captured_graph_replays_the_call():
    fd, x = called_once(64, 65)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = fd.execute([x, 0.5])[0]
    for _ in range(3):
        x.copy_(torch.randn(64, 65, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        near(out, expected(x, 0.5))


def counting(dtype):
    """x = x + 1 and the sum of its rows, over the input: each call needs all that the call in front stored."""
    fd = FusionDefinition()
    x = fd.define_tensor([-1, -1], True, dtype)
    y = fd.ops.add(x, 1.0)
    fd.add_output(y, alias_input=x)
    fd.add_output(fd.ops.sum(y, [1]))
    return fd


@pytest.mark.parametrize("shape", [(1, 39), (3, 4096), (1500, 700), (40000, 256)])
def test_launches_that_begin_early_wait_for_those_in_front(shape):
    """Programmatic dependent launch: in a stream, in a graph, and behind and in front of kernels of others."""
    calls = 200
    fd = counting(DataType.Float)
    x = torch.zeros(shape, device="cuda")
    fd.execute([x])
    x.zero_()
    for n in range(1, calls + 1):
        sums = fd.execute([x])[-1]
        if n % 50 == 0:
            x.mul_(1)  # a kernel that depends on nothing early
    assert torch.equal(x, torch.full(shape, float(calls), device="cuda"))
    assert torch.equal(sums, x.sum(1))
    graph = torch.cuda.CUDAGraph()
    x.zero_()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            sums = fd.execute([x])[-1]
    for n in range(1, 4):
        graph.replay()
        assert torch.equal(x, torch.full(shape, float(n * calls), device="cuda"))
        assert torch.equal(sums, x.sum(1))


def test_graphs_keep_the_counters_of_their_calls():
    """Blocks that share columns count themselves. Graphs begin with counts of 0 each time, whatever runs beside them."""
    fd = FusionDefinition()
    x = fd.define_tensor([-1, -1], True, DataType.Float)
    fd.add_output(fd.ops.sum(x, [0]))
    torch.manual_seed(5)
    xs = [torch.randint(-8, 9, (20000, 160), device="cuda").float() for _ in range(4)]
    wanted = [x.sum(0) for x in xs]
    assert torch.equal(fd.execute([xs[0]])[0], wanted[0])
    assert "kLastBlock" in "".join(fd.cuda_source([xs[0]]).values())
    streams = [torch.cuda.Stream() for _ in range(2)]
    for _ in range(3):  # later graphs take the memory of earlier ones
        graphs, results = [], []
        for pair in (xs[:2], xs[2:]):
            graphs.append(torch.cuda.CUDAGraph())
            with torch.cuda.graph(graphs[-1]):
                results.append([fd.execute([x])[0] for x in pair])
        torch.cuda.synchronize()
        beside = []
        for _ in range(20):
            for stream, graph in zip(streams, graphs):
                with torch.cuda.stream(stream):
                    graph.replay()
            beside.append(fd.execute([xs[1]])[0])
        torch.cuda.synchronize()
        for result, expected in zip(results[0] + results[1], wanted):
            assert torch.equal(result, expected)
        assert all(torch.equal(b, wanted[1]) for b in beside)
        del graphs, results, graph


def test_grid_reductions_on_two_streams_at_once():
    fd = FusionDefinition.from_text("""fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = sum %x over [0]
  output %y
}
steps @f {
  split %y.i0 by 256 -> o, t
  split %y.o by 8 outer -> g, s
  parallelize %y.g on grid.x
  parallelize %y.t on block.x
}
""")
    xs = [torch.randn(1 << 20, device="cuda") for _ in range(2)]
    wanted = [fd.execute([x])[0].clone() for x in xs]
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    results = [[], []]
    for _ in range(50):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                results[i].append(fd.execute([xs[i]])[0])
    torch.cuda.synchronize()
    for i in range(2):
        assert all(torch.equal(r, wanted[i]) for r in results[i])


def test_threads_call_one_definition():
    fd = scaled_sum()
    errors = []

    def work(seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for i in range(100):
                x = torch.randn(3 + (seed + i) % 5, 17 + i % 3, device="cuda", generator=generator)
                try:
                    near(fd.execute([x, 0.5])[0], expected(x, 0.5))
                except Exception as e:  # noqa: BLE001  reported below
                    errors.append(e)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_memory_does_not_grow():
    fd = scaled_sum()
    x = torch.randn(128, 128, device="cuda")
    fd.execute([x, 0.5])
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(2000):
        fd.execute([x, 0.5])
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


def test_record_after_a_fast_call(tmp_path):
    fd = scaled_sum()
    x = torch.randn(7, 33, device="cuda")
    fd.execute([x, 0.5])
    fd.execute([x, 0.5])
    fd.record(tmp_path / "run.fuse")
    assert fusebox.replay(tmp_path / "run.fuse").identical
