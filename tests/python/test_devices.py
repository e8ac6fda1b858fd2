"""Calls on several GPUs of one process: each runs where its tensors lie, whatever device is current, alone or from several threads."""

import threading

import pytest
import torch

from fusebox import DataType, FuseboxError, FusionDefinition

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs")


def softmax() -> FusionDefinition:
    """y = softmax(x) over the last axis, by an op at a time: a reduction kernel with persistent rows."""
    fd = FusionDefinition("softmax_on_devices")
    x = fd.define_tensor([-1, -1], True, DataType.Float)
    e = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    fd.add_output(fd.ops.truediv(e, fd.ops.sum(e, [1], keepdim=True)))
    return fd


def total() -> FusionDefinition:
    """The sum of all elements, which blocks combine through a counter in the memory of their device."""
    fd = FusionDefinition("total_on_devices")
    x = fd.define_tensor([-1], True, DataType.Float)
    fd.add_output(fd.ops.sum(x, [0]))
    return fd


def expect_softmax(fd: FusionDefinition, device: int, rows: int, seed: int) -> None:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    x = torch.randn(rows, 333, generator=generator).to(f"cuda:{device}")
    (y,) = fd.execute([x])
    assert y.device == x.device
    torch.testing.assert_close(y, torch.softmax(x, 1))


def test_one_definition_runs_on_each_device_in_turn():
    fd = softmax()
    for call in range(6):
        expect_softmax(fd, call % 2, 17, call)


def test_the_current_device_does_not_matter():
    fd = softmax()
    for current in (0, 1):
        for device in (0, 1):
            with torch.cuda.device(current):
                expect_softmax(fd, device, 5, 10 * current + device)
                assert torch.cuda.current_device() == current


def test_each_device_counts_its_own_blocks():
    fd = total()
    for call in range(20):
        x = torch.full((1 << 20,), float(call + 1), device=f"cuda:{call % 2}")
        (y,) = fd.execute([x])
        assert y.device == x.device and y.item() == (call + 1) * (1 << 20)


def test_threads_with_a_device_each():
    fd, errors = softmax(), []

    def work(device: int) -> None:
        try:
            for call in range(100):
                expect_softmax(fd, device, 1 + call % 7, 1000 * device + call)
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_tensors_of_two_devices_are_refused():
    fd = FusionDefinition("sum_of_two_devices")
    x, y = (fd.define_tensor([-1], True, DataType.Float) for _ in range(2))
    fd.add_output(fd.ops.add(x, y))
    given = [torch.ones(8, device="cuda:0"), torch.ones(8, device="cuda:1")]
    with pytest.raises(FuseboxError, match="move one of them"):
        fd.execute(given)
    # Also once calls on both devices are known.
    for device in (0, 1):
        fd.execute([torch.ones(8, device=f"cuda:{device}")] * 2)
    with pytest.raises(FuseboxError, match="move one of them"):
        fd.execute(given)


def test_an_aten_segment_runs_on_its_tensors_device():
    fd = FusionDefinition("product_on_devices")
    a, b = (fd.define_tensor([-1, -1], True, DataType.Float) for _ in range(2))
    fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))
    for device in (1, 0):
        x = torch.randn(16, 32, device=f"cuda:{device}")
        y = torch.randn(32, 8, device=f"cuda:{device}")
        with torch.cuda.device(1 - device):
            (z,) = fd.execute([x, y])
        assert z.device == x.device
        torch.testing.assert_close(z, torch.relu(x @ y))
