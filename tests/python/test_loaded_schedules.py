"""Programs that are loaded with a schedule which needs to know the sizes of a run."""

import pytest
import torch

import fusebox
from fusebox import FuseboxError, FusionDefinition


def expanded(fd):
    x = fd.define_tensor([-1, -1])
    fd.add_output(fd.ops.add(fd.ops.expand(x, [3, 2]), 1))


def varied(fd):
    fd.add_output(fd.ops.var(fd.define_tensor([7, -1]), [1]))
    fd.add_output(fd.ops.abs(fd.define_tensor([7, 1])))


def sliced(fd):
    x = fd.define_tensor([-1])
    n = fd.define_scalar(torch.int64)
    fd.add_output(fd.ops.mul(fd.ops.slice(x, [n], [5]), 2))


def reshaped(fd):
    fd.add_output(fd.ops.mul(fd.ops.reshape(fd.define_tensor([-1, -1]), [-1, 2]), 2))


CASES = {
    "expand": (expanded, lambda: [torch.randn(3, 2)]),
    "var": (varied, lambda: [torch.randn(7, 2), torch.randn(7, 1)]),
    "slice": (sliced, lambda: [torch.randn(9), 2]),
    "reshape": (reshaped, lambda: [torch.randn(3, 4)]),
}


def recorded(define, inputs, path):
    with FusionDefinition() as fd:
        define(fd)
    wanted = fd.execute(inputs)
    fd.record(path, inputs)
    return fusebox.load(path), wanted


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_run_is_loaded_and_executed(case, tmp_path):
    define, make = CASES[case]
    inputs = make()
    loaded, wanted = recorded(define, inputs, tmp_path / "a.fuse")
    lines = loaded.program.step_lines()
    assert lines
    for again in (loaded, loaded.copy(), FusionDefinition.from_text(loaded.to_string())):
        assert again.program.step_lines() == lines
        for got, one in zip(again.execute(inputs), wanted, strict=True):
            assert torch.equal(got, one)


@pytest.mark.parametrize("case", ["expand", "reshape"])
def test_waiting_steps_are_taken_when_axes_are_decided(case, tmp_path):
    define, make = CASES[case]
    inputs = make()
    loaded, wanted = recorded(define, inputs, tmp_path / "a.fuse")
    lines = loaded.program.step_lines()
    with pytest.raises(FuseboxError) as caught:
        loaded.sched.apply("inline_most of []")
    assert caught.value.code == "E0302" and "concretize" in caught.value.message
    assert not loaded.sched.is_applicable("inline_most of []")
    with pytest.raises(FuseboxError) as caught:
        loaded.ops.exp(1.0)
    assert caught.value.code == "E0208"
    loaded.sched.concretize(inputs)
    assert loaded.program.step_lines() == lines
    assert "block.x" in loaded.scheduled_text()
    assert torch.equal(loaded.execute(inputs)[0], wanted[0])


def test_steps_that_do_not_fit_the_decided_axes_are_refused():
    with FusionDefinition() as fd:
        reshaped(fd)
    text = fd.to_string() + "steps @fusion {\n  split %nothing.i0 by 2 -> o, t\n}\n"
    again = FusionDefinition.from_text(text)
    for _ in range(2):  # a refusal leaves the definition as it was
        with pytest.raises(FuseboxError) as caught:
            again.sched.concretize([torch.randn(3, 4)])
        assert caught.value.code == "E0301"
    with pytest.raises(FuseboxError) as caught:
        again.execute([torch.randn(3, 4)])
    assert caught.value.code == "E0301"


def test_a_schedule_may_use_the_name_of_an_input_that_nothing_reads(tmp_path):
    def define(fd):
        x = fd.define_tensor([7, -1], name="t0")
        fd.define_tensor([-1, 1], name="t0_1")
        fd.add_output(fd.ops.sum(x, [1]))

    inputs = [torch.randn(7, 2), torch.randn(7, 1)]
    loaded, wanted = recorded(define, inputs, tmp_path / "a.fuse")
    assert any("-> t0_1" in line for line in loaded.program.step_lines())
    assert torch.equal(loaded.execute(inputs)[0], wanted[0])
