"""Captured CUDA graphs beside the lives of definitions, the slower way of calls, and memory that PyTorch's allocator owns."""

import gc
import threading

import pytest
import torch
from support import HAS_ATEN
from test_aten_segments import SLICE, expected

from fusebox import DataType, FuseboxError, FusionDefinition

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")
needs_aten = pytest.mark.skipif(not HAS_ATEN, reason="built without ATen")

LONG = 2_000_000_000  # cycles: about a second


def scaled(factor, in_place=False):
    """y = factor * x, a kernel of its own for each factor."""
    fd = FusionDefinition(f"scaled_{factor}")
    x = fd.define_tensor([-1], True, DataType.Float)
    y = fd.ops.mul(x, float(factor))
    fd.add_output(y, x if in_place else None)
    return fd


def interpreted(factor):
    """The same, with its input as a second output: it has no fast call."""
    fd = FusionDefinition(f"interpreted_{factor}")
    x = fd.define_tensor([-1], True, DataType.Float)
    fd.add_output(fd.ops.mul(x, float(factor)))
    fd.add_output(x)
    return fd


def load_others(count=40):
    """Makes so many definitions and drops them, so that modules which rest are unloaded."""
    x = torch.ones(8, device="cuda")
    for factor in range(1000, 1000 + count):
        assert torch.equal(scaled(factor).execute([x])[0], factor * x)


def captured(fd, inputs):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = fd.execute(inputs)
    return graph, outputs


def replays(graph, output, x, factor):
    for n in range(1, 4):
        x.fill_(n)
        output.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(output, torch.full_like(output, float(factor * n)))


def test_a_graph_outlives_the_definition_that_it_captured():
    x = torch.ones(1000, device="cuda")
    fd = scaled(3)
    fd.execute([x])
    graph, (y,) = captured(fd, [x])
    del fd
    gc.collect()
    load_others()
    replays(graph, y, x, 3)


def test_a_graph_outlives_the_plan_that_it_captured():
    x = torch.ones(1000, device="cuda")
    fd = scaled(5)
    fd.execute([x])
    graph, (y,) = captured(fd, [x])
    fd.sched.apply(f"split %{_made(fd)}.i0 by 128 -> o, t")
    assert torch.equal(fd.execute([x])[0], 5 * x)
    load_others()
    replays(graph, y, x, 5)


def _made(fd):
    """The name of the tensor that the only op makes."""
    (line,) = [line for line in str(fd).splitlines() if " = mul " in line]
    return line.split("=")[0].strip().lstrip("%")


def test_graphs_outlive_a_definition_whose_first_call_they_captured():
    x = torch.ones(1000, device="cuda")
    graph, (y,) = captured(scaled(7), [x])
    load_others()
    replays(graph, y, x, 7)


def test_a_definition_that_ends_inside_of_a_capture_leaves_it_whole():
    x = torch.ones(1000, device="cuda")
    ending, slower, staying = scaled(11), interpreted(12), scaled(13)
    for fd in (ending, slower, staying):
        fd.execute([x])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (first,) = ending.execute([x])
        cycle = [slower]
        cycle.append(cycle)  # the collector finds this one
        del ending, slower, fd, cycle
        gc.collect()
        (second,) = staying.execute([first])
    load_others()
    replays(graph, second, x, 11 * 13)


def test_a_kernel_that_waits_outlives_its_definition():
    x = torch.ones(1 << 20, device="cuda")
    fd = scaled(19)
    fd.execute([x])
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
        (y,) = fd.execute([x])
    del fd
    gc.collect()
    load_others()
    stream.synchronize()
    assert torch.equal(y, 19 * x)


@pytest.mark.parametrize("is_known", [False, True])
def test_the_slower_way_beside_a_capture_of_another_thread(is_known):
    """The capture is global: it ends if any thread does what may disturb it, such as waiting for the whole GPU or loading a kernel."""
    x, z = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda")
    fd = interpreted(23 + is_known)
    if is_known:
        fd.execute([z])
    stream, results, errors = torch.cuda.Stream(), [], []

    def work():
        try:
            with torch.cuda.stream(stream):
                for _ in range(3):
                    results.append(fd.execute([z])[0])
        except Exception as e:  # noqa: BLE001  reported below
            errors.append(e)

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        y = x * 2
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        y = y + 1
    assert errors == []
    assert len(results) == 3 and all(torch.equal(r, (23 + is_known) * z) for r in results)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, torch.full_like(y, 3.0))


def test_the_slower_way_inside_of_a_capture_is_refused_and_leaves_it_whole():
    x = torch.ones(1000, device="cuda")
    fd = interpreted(31)
    fd.execute([x])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        with pytest.raises(FuseboxError, match="before the capture") as refused:
            fd.execute([x])
        y = y + 1
    assert refused.value.code == "E0212"
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, torch.full_like(y, 3.0))
    assert torch.equal(fd.execute([x])[0], 31 * x)


def test_the_slower_way_waits_for_no_other_stream():
    x = torch.ones(1000, device="cuda")
    fd = interpreted(29)
    fd.execute([x])
    stream, done = torch.cuda.Stream(), torch.cuda.Event()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
        done.record()
    y = fd.execute([x])[0]
    assert not done.query()
    assert torch.equal(y, 29 * x)
    torch.cuda.synchronize()


@needs_aten
@pytest.mark.parametrize("device", [None, "cuda"], ids=["fast", "slower"])
def test_record_stream_keeps_the_memory_of_outputs_by_aten(device):
    fd = FusionDefinition.from_text(SLICE)
    x, w = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, device="cuda")
    wanted = expected(x, w)
    fd.execute([x, w], device=device)
    side = torch.cuda.Stream()
    for i in (0, 1):  # those that the segment makes
        y = fd.execute([x, w], device=device)[i]
        assert torch.equal(y, wanted[i]) and y.stride() == wanted[i].stride() and not y.is_inference()
        torch.cuda.synchronize()
        address = y.data_ptr()
        with torch.cuda.stream(side):
            torch.cuda._sleep(LONG)
            copy = y + 0
        y.record_stream(side)
        del y
        # Memory that nobody recorded would be given out again at once.
        others = [torch.empty(1024, 1024, device="cuda") for _ in range(8)]
        assert address not in [t.data_ptr() for t in others]
        for t in others:
            t.zero_()
        torch.cuda.synchronize()
        assert torch.equal(copy, wanted[i])


def test_an_overwritten_lazy_clone_leaves_its_source_alone():
    fd = scaled(2, in_place=True)
    fd.execute([torch.ones(1000, device="cuda")])
    for is_clone in (True, False):
        source = torch.ones(1000, device="cuda")
        clone = torch._lazy_clone(source)
        written, other = (clone, source) if is_clone else (source, clone)
        fd.execute([written])
        fd.execute([written])
        assert torch.equal(other, torch.ones_like(other)) and torch.equal(written, torch.full_like(written, 4.0))
    assert fd.cache_info().hits >= 2
