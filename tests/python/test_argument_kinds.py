"""Arguments of the wrong kind: each is refused with the code that fits, and the definition stays as it was."""

import numpy as np
import pytest
import torch

import fusebox
from definitions import code_of, error_of
from fusebox import CacheOp, FusionDefinition, ParallelType

SURROGATE = "a\ud800"
TOO_LARGE = 2**70


def defined():
    """y = -x of [4, 8], which can be scheduled, and its tensors."""
    fd = FusionDefinition()
    x = fd.define_tensor([4, 8], name="x")
    y = fd.ops.neg(x)
    fd.add_output(y)
    return fd, x, y


DEFINITIONS = [
    ("E0215", lambda fd, x, y: fd.from_pytorch(3)),
    ("E0215", lambda fd, x, y: fd.from_pytorch(None)),
    ("E0215", lambda fd, x, y: fd.from_pytorch(np.ones(3))),
    ("E0401", lambda fd, x, y: fd.from_pytorch(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))),
    ("E0401", lambda fd, x, y: fd.from_pytorch(torch.ones(2, 2).to_sparse())),
    ("E0207", lambda fd, x, y: fd.define_tensor([2, 3], stride_order=None)),
    ("E0207", lambda fd, x, y: fd.define_tensor([2, 3], stride_order=1)),
    ("E0207", lambda fd, x, y: fd.define_tensor([2, 3], stride_order=[0, "a"])),
    ("E0215", lambda fd, x, y: fd.define_tensor([2, 3], [np.ones(2), True])),
    ("E0215", lambda fd, x, y: fd.define_tensor([2], name=3)),
    ("E0101", lambda fd, x, y: fd.define_tensor([2], name=SURROGATE)),
    ("E0215", lambda fd, x, y: fd.define_scalar(name=3)),
    ("E0101", lambda fd, x, y: fd.define_scalar(name=SURROGATE)),
    ("E0215", lambda fd, x, y: fd.define_vector(None)),
    ("E0212", lambda fd, x, y: fd.define_vector(np.int64(3))),
    ("E0215", lambda fd, x, y: FusionDefinition(defects=3)),
    ("E0215", lambda fd, x, y: FusionDefinition(defects=[3])),
    ("E0215", lambda fd, x, y: FusionDefinition(unfused=np.ones(2))),
    ("E0101", lambda fd, x, y: FusionDefinition(SURROGATE)),
    ("E0440", lambda fd, x, y: FusionDefinition(precision=np.ones(2))),
    ("E0101", lambda fd, x, y: fd.add_output(SURROGATE)),
    ("E0101", lambda fd, x, y: fd.ops.add(x, SURROGATE)),
    ("E0215", lambda fd, x, y: FusionDefinition.from_text(3)),
    ("E0215", lambda fd, x, y: FusionDefinition.from_text(str(fd), 3)),
    ("E0215", lambda fd, x, y: FusionDefinition.from_text(str(fd), steps=None)),
    ("E0101", lambda fd, x, y: FusionDefinition.from_text(SURROGATE)),
    ("E0101", lambda fd, x, y: FusionDefinition.from_text(str(fd), SURROGATE)),
]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(("code", "call"), DEFINITIONS)
def test_definitions(code, call):
    fd, x, y = defined()
    before = fd.to_string()
    assert code_of(lambda: call(fd, x, y)) == code
    assert fd.to_string() == before


@pytest.mark.parametrize("flag", [np.ones(2), torch.ones(2)])
def test_flags(flag):
    fd, x, _ = defined()
    assert code_of(lambda: fd.ops.sum(x, [0], flag)) == "E0215"
    assert code_of(lambda: fd.ops.var(x, [0], keepdim=flag)) == "E0215"
    assert code_of(lambda: fd.ops.broadcast(x, [flag, False, False])) == "E0215"
    assert code_of(lambda: fd.ops.argsort(x, 0, flag)) == "E0215"
    q = fd.define_tensor([1, 1, 4, 8])
    assert code_of(lambda: fd.ops.sdpfa_fwd(q, q, q, flag)) == "E0215"
    assert code_of(lambda: fd.ops.sdpfa_fwd(q, q, q, is_causal=flag)) == "E0215"


def test_integers_of_numpy_are_taken_everywhere():
    fd = FusionDefinition()
    two, six = np.int64(2), np.int32(6)
    assert fd.define_tensor([two, six]).shape == [2, 6]
    assert fd.define_tensor(sizes=[two, six], strides=[six, np.int8(1)], static_sizes=True).shape == [2, 6]
    t = fd.define_tensor([two, six], [six, two], static_sizes=True)
    assert fd.ops.reshape(t, [six, two]).shape == [6, 2]
    assert fd.define_tensor([2, 3], stride_order=[np.int64(0), np.int64(1)]).shape == [2, 3]
    assert code_of(lambda: fd.define_tensor([np.float32(2)])) == "E0207"
    assert code_of(lambda: fd.define_tensor([np.uint64(2**63)])) == "E0104"


@pytest.mark.parametrize("axes", [np.array([0, 1]), torch.tensor([0, 1]), torch.tensor(0.5), torch.empty((), dtype=torch.int64, device="meta")])
def test_an_array_is_no_integer(axes):
    fd, x, _ = defined()
    assert code_of(lambda: fd.ops.permute(x, axes)) == "E0207"
    assert code_of(lambda: fd.ops.size(x, axes)) == "E0207"
    assert code_of(lambda: fd.ops.var(x, axes)) == "E0207"
    assert code_of(lambda: fd.ops.sum(x, axes)) == "E0102"  # the second argument may be a dtype
    assert code_of(lambda: fd.define_tensor([axes])) == "E0207"


def test_runs():
    fd, *_ = defined()
    given = [torch.ones(4, 8)]
    for wrong in (1.5, None, "2", 2**40, TOO_LARGE):
        assert code_of(lambda: fd.profile(given, runs=wrong)) == "E0440"
        assert code_of(lambda: fd.tune(given, runs=wrong)) == "E0440"
    assert fd.profile(given, runs=np.int64(2)).runs == 2
    assert code_of(lambda: fd.validate(given, 3)) == "E0215"
    assert code_of(lambda: fd.validate(given, [np.ones((4, 8))])) == "E0215"
    assert code_of(lambda: fd.execute(given, device=TOO_LARGE)) == "E0401"
    for call in (fd.judge, fd.sched.compile_refusal):
        error = error_of(lambda: call([torch.ones(4, 8, device="meta")]))
        assert error.code == "E0401" and error.place == "inputs[0]" and "meta" in error.message


def test_replays(tmp_path):
    fd, *_ = defined()
    path = tmp_path / "b.fuse"
    fd.record(path, [torch.ones(4, 8)])
    assert code_of(lambda: fusebox.replay(path, on=3)) == "E0215"
    assert code_of(lambda: fusebox.replay(path, start=None)) == "E0215"
    assert code_of(lambda: fusebox.replay(path, threads=None)) == "E0440"
    assert code_of(lambda: fusebox.replay(path, threads=TOO_LARGE)) == "E0440"
    assert code_of(lambda: fusebox.replay(path, defects=3)) == "E0215"
    assert code_of(lambda: fusebox.replay(path, trust_artifacts=np.ones(2))) == "E0215"
    assert code_of(lambda: fusebox.load(path, 3)) == "E0215"
    assert code_of(lambda: fusebox.load(path, steps=SURROGATE)) == "E0101"
    assert fusebox.replay(path, on="host", start="scheduled", threads=2).identical


SCHEDULES = [
    ("E0215", lambda s, t: s.reorder(t, [0])),
    ("E0206", lambda s, t: s.reorder(t, {"a": 0})),
    ("E0206", lambda s, t: s.reorder(t, {0: None})),
    ("E0207", lambda s, t: s.inline_at(t, "a")),
    ("E0215", lambda s, t: s.inline_at(t, 1, selected=[3])),
    ("E0215", lambda s, t: s.inline_at(t, 1, best_effort=np.ones(2))),
    ("E0215", lambda s, t: s.rfactor(t, None)),
    ("E0206", lambda s, t: s.rfactor(t, ["a"])),
    ("E0215", lambda s, t: s.inline_most(3)),
    ("E0215", lambda s, t: s.inline_most(t)),
    ("E0215", lambda s, t: s.transform_like(3)),
    ("E0215", lambda s, t: s.transform_like(t, 3)),
    ("E0215", lambda s, t: s.parallelize_like(t, -1, 3)),
    ("E0207", lambda s, t: s.parallelize_like(t, "a")),
    ("E0215", lambda s, t: s.parallelize_like(t, -1, [], 3)),
    ("E0207", lambda s, t: s.parallelize_like(t, -1, [], ["grid.x"])),
    ("E0215", lambda s, t: s.is_reduction(3)),
    ("E0215", lambda s, t: s.bounded_transform_backward(3, 4)),
    ("E0215", lambda s, t: s.to_string(3)),
    ("E0215", lambda s, t: s.apply(3)),
    ("E0215", lambda s, t: s.apply([3])),
    ("E0215", lambda s, t: s.apply(torch.tensor(1.0))),
    ("E0101", lambda s, t: s.apply(SURROGATE)),
    ("E0215", lambda s, t: s.refusal(3)),
    ("E0101", lambda s, t: s.is_applicable(SURROGATE)),
    ("E0401", lambda s, t: s.concretize(3)),
    ("E0401", lambda s, t: s.concretize([torch.nested.nested_tensor([torch.ones(2)])])),
    ("E0215", lambda s, t: s.set_allocation(t, [0], ["a"])),
    ("E0215", lambda s, t: s.set_allocation(t, 3)),
    ("E0215", lambda s, t: s.set_allocation(t, [0, 1], 3)),
    ("E0207", lambda s, t: s.set_device_mesh(t, "x")),
    ("E0207", lambda s, t: s.set_device_mesh(t, 3)),
    ("E0104", lambda s, t: s.set_device_mesh(t, [TOO_LARGE])),
    ("E0104", lambda s, t: s.split(t, 0, TOO_LARGE)),
    ("E0215", lambda s, t: s.split(t, 0, 2, np.ones(2))),
    ("E0104", lambda s, t: s.resize(t, 0, 0, TOO_LARGE)),
    ("E0215", lambda s, t: s.recompute(3, t)),
    ("E0215", lambda s, t: s.recompute(t, 3)),
    ("E0215", lambda s, t: s.set_loop_domain(t, 3)),
    ("E0207", lambda s, t: s.circular_buffer(t, "a")),
    ("E0215", lambda s, t: s.assume(3, multiple_of=4)),
    ("E0207", lambda s, t: s.bound_launch("a")),
    ("E0207", lambda s, t: s.cluster(2, on="grid.x")),
    ("E0215", lambda s, t: s.dependent_launch(3)),
    ("E0215", lambda s, t: s.assign(3, "a")),
    ("E0215", lambda s, t: s.assign([t], 3)),
    ("E0215", lambda s, t: s.precision(fast=np.ones(2))),
    ("E0215", lambda s, t: s.rewrite(3)),
    ("E0215", lambda s, t: s.step(3, [])),
    ("E0215", lambda s, t: t.step(3, [])),
    ("E0215", lambda s, t: t.step("inline_most", 3)),
    ("E0215", lambda s, t: t.step("inline_most", [3.5])),
    ("E0215", lambda s, t: t.step("inline_most", [], [SURROGATE])),
]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(("code", "call"), SCHEDULES)
def test_schedules(code, call):
    fd, _, y = defined()
    assert code_of(lambda: call(fd.sched, y)) == code
    assert fd.sched.steps() == []


def test_forms_that_schedules_take():
    fd, _, y = defined()
    y.split(np.int64(1), np.int64(4))
    y.reorder({np.int64(0): np.int64(1)})
    fd.sched.apply(line for line in ["", f" parallelize %{y.name}.{y.axis(0).name} on grid.x"])
    fd.sched.set_allocation(y, (0, 1, 2), [np.True_, True, 1])
    fd.sched.parallelize_like(y, np.int64(-1), parallel_types={ParallelType.grid_x})
    y.cache_before().cache_after(cache_op=CacheOp.unspecified)
    assert [line.split()[0] for line in fd.sched.steps()] == ["split", "reorder", "parallelize", "set_allocation", "parallelize_like", "cache_before", "cache_after"]
