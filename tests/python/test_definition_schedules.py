"""Schedules of a fusebox.FusionDefinition: each function makes its step, launches check them, and a record keeps them."""

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)

from definitions import code_of, normal  # noqa: E402
from fusebox import DataType, FusionDefinition, MemoryType, ParallelType  # noqa: E402


def scheduled_softmax_sum(x):
    with FusionDefinition("rows") as fd:
        t = fd.from_pytorch(x)
        e = fd.ops.exp(t)
        s = fd.ops.sum(e, 1)
        fd.add_output(s)
        s.split(1, 32)
        fd.sched.transform_like(s)
        s.axis(0).parallelize(ParallelType.grid_x)
        s.parallelize(2, ParallelType.block_x)
        fd.sched.parallelize_like(s)
        fd.sched.inline_most()
    return fd, s


def test_a_schedule_is_one_kernel():
    x = normal(5, 133)
    fd, s = scheduled_softmax_sum(x)
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, x.exp().sum(1))
    assert [loop.parallel_type for loop in s.loops()] == [ParallelType.grid_x, ParallelType.serial, ParallelType.block_x]
    assert fd.sched.is_reduction(s) and "split %" in fd.to_string() and "scheduled" in fd.sched.user_schedule_ir()
    fd.validate([x])


def test_schedule_functions():
    x = normal(16, 24)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        y = fd.ops.neg(fd.ops.exp(t))
        fd.add_output(y)
        c = t.cache_after()
        fd.sched.set_memory_type(c, MemoryType.shared)
        y.split(1, 8)
        y.split(0, 4, inner_split=False)
        y.reorder({0: -1})
        y.merge(0)
        assert len(y.loops()) == 3
        fd.sched.transform_like(y)
        y.parallelize(0, ParallelType.grid_x)
        y.axis(1).parallelize(ParallelType.block_x)
        fd.sched.parallelize_like(y, parallel_types={ParallelType.grid_x, ParallelType.block_x})
        fd.sched.inline_at(y, pos=1, best_effort=True)
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, -x.exp())
    assert {"%" + v.name for v in fd.sched.tensors()} >= {"%" + v.name for v in (t, c, y)}


def test_rfactor():
    x = normal(3, 100)
    with FusionDefinition() as fd:
        s = fd.ops.sum(fd.from_pytorch(x), [1])
        fd.add_output(s)
        s.split(1, 16)
        first = s.rfactor([1])
        for t in (first, s):
            t.axis(0).parallelize(ParallelType.grid_x)
            t.axis(-1).parallelize(ParallelType.block_x)
        fd.sched.inline_most()
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, x.sum(1))
    assert fd.sched.is_reduction(first)


def test_a_copys_schedule_takes_the_originals_tensors():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 128])
        y = fd.ops.exp(x)
        fd.add_output(y)
    copy = fd.copy()
    copy.sched.split(y, 1, 16)
    copy.sched.resize(y, 2, 0, 1)
    copy.sched.parallelize(y, 1, ParallelType.block_x)
    assert [i.name for i in y.loops()] == ["i0", "i1"] and fd.sched.steps() == []
    assert [s.split()[0] for s in copy.sched.steps()] == ["split", "resize", "parallelize"]
    assert code_of(lambda: copy.sched.split(3, 0, 4)) == "E0215"


def test_a_launch_checks_the_facts_of_its_schedule():
    x = normal(4, 8)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        y = fd.ops.neg(t)
        fd.add_output(y)
        rows, columns = fd.ops.shape(t)
        fd.sched.assume(columns, multiple_of=4)
        fd.sched.assume(rows, columns, below=40)
        y.split(1, 4)
        y.parallelize(0, ParallelType.block_x)
        fd.sched.bound_launch(4, blocks=2)
    for shape in [(4, 8), (1, 36), (0, 8)]:
        z = normal(*shape)
        (out,) = fd.execute([z])
        torch.testing.assert_close(out, -z)
    for shape in [(4, 6), (4, 12), (5, 4)]:  # not a multiple of 4, 48 elements, 5 threads
        assert code_of(lambda: fd.execute([normal(*shape)])) == "E0409"


def test_the_blocks_of_a_cluster_share_rows():
    x = normal(3, 37)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        s = fd.ops.broadcast(fd.ops.sum(t, [1]), [False, True])
        y = fd.ops.sub(t, s)
        fd.add_output(y)
        y.split(1, 4, inner_split=False)
        fd.sched.transform_like(y)
        y.parallelize(0, ParallelType.grid_y)
        y.parallelize(1, ParallelType.grid_x)
        fd.sched.parallelize_like(y)
        fd.sched.inline_most()
        assert code_of(lambda: fd.sched.cluster(16)) == "E0302"
        fd.sched.cluster(4)
    (text,) = fd.cuda_source([x]).values()
    assert "__cluster_dims__(4, 1, 1)" in text
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, x - x.sum(1, keepdim=True))


def test_every_step_has_a_function():
    from fusebox import _fusebox
    from fusebox.sched import Schedule

    renamed = {"set_mesh": "set_device_mesh", "propagate": "bounded_transform_backward"}
    # Steps that only compilation and planners take, and notes on domains.
    internal = {"concretize", "concretize_reshape", "loop_broadcast"}
    for kind in _fusebox.step_kinds():
        assert kind in internal or callable(getattr(Schedule, renamed.get(kind, kind))), kind


def test_operations_are_assigned_to_kernels_and_aten(tmp_path):
    x, acc = normal(3, 13, dtype=torch.bfloat16), normal(3, seed=1)
    with FusionDefinition("segments") as fd:
        a, total, eps = fd.from_pytorch(x), fd.from_pytorch(acc), fd.define_scalar(DataType.Float)
        f = fd.ops.cast(a, DataType.Float)
        e = fd.ops.exp(f)
        s = fd.ops.sum(e, [1])
        scaled = fd.ops.mul(s, fd.ops.add(eps, fd.define_scalar(1.0, DataType.Float)))
        t = fd.ops.add(total, scaled)
        b = fd.ops.broadcast(t, [False, True])
        y = fd.ops.sub(f, b)
        z = fd.ops.cast(y, DataType.BFloat16)
        fd.add_output(z)
        fd.add_output(t, alias_input=total)
        fd.sched.assign([f, e], "head")
        fd.sched.assign([s], "sums", "aten")
        fd.sched.assign([scaled, t], "rows")
        fd.sched.assign([f, b, y, z], "tail")
        for tensor in (e, z):
            fd.sched.split(tensor, 1, 8)
            fd.sched.transform_like(tensor)
            tensor.axis(0).parallelize(ParallelType.grid_x)
            tensor.axis(-1).parallelize(ParallelType.block_x)
            fd.sched.parallelize_like(tensor)
        assert len(e.loops()) == 3 and len(t.loops()) == 1
        assert code_of(lambda: fd.sched.split(s, 0, 2)) == "E0302"
        assert code_of(lambda: fd.sched.assign([s], "tail")) == "E0302"
        fd.sched.inline_most()
    after = acc.clone()
    (out,) = fd.execute([x, after, 0.5])
    expected = acc + x.float().exp().sum(1) * 1.5
    torch.testing.assert_close(after, expected)
    torch.testing.assert_close(out, (x.float() - expected[:, None]).bfloat16())
    fd.validate([x, acc.clone(), 0.5])
    path = tmp_path / "segments.fuse"
    fd.record(path, [x, acc, 0.5])
    again = fusebox.replay(path)
    assert again.identical and {"segments", "crossings"} <= {s.name for s in again.stages}
    assert 'name "sums" by aten' in fd.to_string()


def test_assignments_that_no_order_fits_are_refused():
    def run(*segments):
        x = normal(5)
        with FusionDefinition("bad") as fd:
            a = fd.from_pytorch(x)
            made = {"b": fd.ops.exp(a)}
            made["c"] = fd.ops.neg(made["b"])
            made["d"] = fd.ops.add(made["b"], made["c"])
            fd.add_output(made["d"])
            for name, tensors, executor in segments:
                fd.sched.assign([made[t] for t in tensors], name, executor)
        return fd.execute([x])

    assert len(run(("s", "bcd", "aten"))) == 1
    assert code_of(lambda: run(("s", "bd", "aten"), ("t", "c", "aten"))) == "E0210"
    assert code_of(lambda: run(("s", "b", "aten"), ("t", "c", "aten"))) == "E0210"
    assert code_of(lambda: run(("s", "bcd", "communicate"))) == "E0212"


def test_rewrites_stand_before_other_steps():
    x = normal(3, 5)
    with FusionDefinition("rewritten") as fd:
        a = fd.from_pytorch(x)
        back = fd.ops.permute(fd.ops.permute(a, [1, 0]), [1, 0])
        y = fd.ops.neg(back)
        fd.add_output(y)
        assert code_of(lambda: fd.sched.rewrite("nonsense")) == "E0302"
        assert code_of(lambda: fd.sched.rewrite("dead_code", depth=3)) == "E0302"
        fd.sched.rewrite("identity_moves", limit=5)
        fd.sched.rewrite("dead_code")
        assert back.name not in fd.program.tensors()
        assert code_of(lambda: back.axis(0)) == "E0301"
        fd.sched.split(y, 1, 4)
        assert code_of(lambda: fd.sched.rewrite("dead_code")) == "E0302"
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, -x)


def test_precision_is_a_step_before_all_others():
    x = normal(3, 5)
    with FusionDefinition("fast") as fd:
        a = fd.from_pytorch(x)
        e = fd.ops.exp(a)
        y = fd.ops.sin(e)
        fd.add_output(y)
        fd.sched.precision()
        fd.sched.precision([e], fast=False)
        assert fd.sched.steps() == ["precision of [] fast", f"precision of [%{e.name}] exact"]
        assert code_of(lambda: fd.sched.precision([a])) == "E0302"
        late = fd.copy()
        late.sched.split(y, 1, 4)
        assert code_of(lambda: late.sched.precision([y])) == "E0302"
    (out,) = fd.execute([x])
    torch.testing.assert_close(out, x.exp().sin(), rtol=1e-4, atol=1e-4)


def test_record_and_replay(tmp_path):
    x = normal(5, 133)
    fd, _ = scheduled_softmax_sum(x)
    path = tmp_path / "rows.fuse"
    assert code_of(lambda: fd.record(path)) == "E0402"
    fd.execute([x])
    fd.record(path)
    again = fusebox.replay(path, threads=2)
    assert again.identical and again.program == "rows" and again.executor == "host"
    assert {"fusion", "scheduled", "kernel", "outputs"} <= {s.name for s in again.stages}
    assert all(s.verdict == "identical" for s in again.stages if s.name != "binary")
    x.add_(1)
    assert code_of(lambda: fd.record(path)) == "E0402"
    strided = normal(133, 5).t()
    assert code_of(lambda: fd.record(tmp_path / "bad.fuse", [strided])) == "E0401"
    fd.record(path, [x])
    assert fusebox.replay(path).identical


def test_an_overwritten_input_is_recorded_as_it_was(tmp_path):
    x = torch.zeros(3, 4)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, 1.0), t)
    fd.execute([x])
    assert code_of(lambda: fd.record(tmp_path / "a.fuse")) == "E0402"
    fd.record(tmp_path / "a.fuse", [x])
    assert x.sum() == 12
    assert fusebox.replay(tmp_path / "a.fuse").identical
