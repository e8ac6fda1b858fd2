"""fusebox.strategies: examples verify, apply and run; every op of the table is drawn; a seeded defect is found, shrunk and kept."""

import collections
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
fusebox = pytest.importorskip("fusebox", exc_type=ModuleNotFoundError)
pytest.importorskip("hypothesis")

from hypothesis import Phase, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.stateful import run_state_machine_as_test  # noqa: E402

from fusebox import DataType, FuseboxError, FusionDefinition, _fusebox  # noqa: E402
from fusebox import strategies as fs  # noqa: E402
from fusebox.strategies.moves import KINDS, Moves  # noqa: E402

# Every run draws the same examples and keeps none; health checks stay on.
EXAMPLES = {"derandomize": True, "database": None, "deadline": None}


def drawn(strategy, count):
    """Draws `count` examples."""
    examples = []

    @settings(max_examples=count, phases=[Phase.generate], **EXAMPLES)
    @given(strategy)
    def collect(example):
        examples.append(example)

    collect()
    return examples


def ops_of(fusion):
    """(op, word of its result's dtype) of each line that computes."""
    found = []
    for line in fusion.to_string().splitlines():
        words = line.split()
        if "=" in words and " : " in line:
            found.append((words[words.index("=") + 1], line.rsplit(" : ", 1)[1].split("[")[0]))
    return found


# -- dtypes, shapes, tensors


def test_dtypes_are_those_that_an_op_takes():
    assert {d.value for d in drawn(fs.dtypes("bitwise_and"), 60)} <= {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}
    assert len(set(drawn(fs.dtypes(), 300))) == len([d for d in DataType if d not in (DataType.Index, DataType.Null, DataType.Float4_e2m1fn)])
    with pytest.raises(FuseboxError) as caught:
        fs.dtypes("no_such_op")
    assert caught.value.code == "E0201"


def test_shapes_keep_their_limits():
    examples = drawn(fs.shapes(min_rank=1, max_rank=5, max_elements=500), 300)
    for shape in examples:
        elements = 1
        for extent in shape:
            elements *= max(extent, 1)
        assert 1 <= len(shape) <= 5 and elements <= 500
    assert {len(s) for s in examples} == {1, 2, 3, 4, 5}
    assert {e for s in examples for e in s} >= {0, 1, 7, 8, 9, 31, 32, 33, 127, 128, 129}
    assert {len(s) for s in drawn(fs.shapes(), 300)} == set(range(7))


def test_tensors_have_boundary_layouts_and_values():
    seen = collections.Counter()
    for t in drawn(fs.tensors(dtype=DataType.Float), 300):
        if t.numel() < 2:
            continue
        seen["contiguous" if t.is_contiguous() else "other"] += 1
        seen["expanded"] += any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape))
        seen["offset"] += t.storage_offset() > 0
        seen["not all zero"] += bool((t != 0).any())
        seen["nan"] += bool(t.isnan().any())
        seen["infinite"] += bool(t.isinf().any())
        seen["-0"] += bool(((t == 0) & t.signbit()).any())
        seen["subnormal"] += bool(((t != 0) & (t.abs() < torch.finfo(t.dtype).smallest_normal)).any())
        seen["fractions"] += bool((t.isfinite() & (t != t.round())).any())
    assert all(seen[name] > 3 for name in ("contiguous", "other", "expanded", "offset", "not all zero", "nan", "infinite", "-0", "subnormal", "fractions")), seen
    plain = drawn(fs.tensors(dtype=DataType.BFloat16, shape=(3, 5), tracks=("integers",)), 30)
    assert all(t.dtype == torch.bfloat16 and t.shape == (3, 5) and (t.float() == t.float().round()).all() for t in plain)


@pytest.mark.parametrize("dtype", [d for d in DataType if d not in (DataType.Index, DataType.Null, DataType.Float4_e2m1fn)], ids=lambda d: d.value)
def test_every_dtype_has_tensors_of_every_track(dtype):
    from fusebox.enums import torch_dtype

    for track in fs.TRACKS:
        t = drawn(fs.tensors(dtype=dtype, shape=(4, 3), tracks=[track]), 2)[-1]
        assert t.dtype == torch_dtype(dtype.value) and t.shape == (4, 3)


# -- fusions and inputs


@pytest.fixture(scope="module")
def many():
    return drawn(fs.fusions(), 600)


def test_every_fusion_verifies_and_reads_as_it_was_written(many):
    for fusion in many:
        again = FusionDefinition.copy(fusion)
        assert again.to_string() == fusion.to_string() == repr(fusion)
        assert "output" in fusion.to_string() and len(fusion.shapes) == sum(i.is_tensor for i in fusion.program.input_infos())


def test_every_op_of_the_table_is_drawn_on_its_dtypes(many):
    table = {name: set(words) for name, _, _, words in _fusebox.op_table()}
    assert set(fs.op_names()) == set(table) and len(table) > 95
    mixed = collections.Counter(op for fusion in many for op, _ in ops_of(fusion))
    assert len(set(mixed) & set(table)) > 0.8 * len(table)
    seen, wanted = set(), set()
    for op, words in table.items():
        wanted |= {(op, word) for word in words if word != "f4e2m1"}
        for fusion in drawn(fs.fusions(ops=[op], max_ops=2), 12):
            ours = {name for name, _ in ops_of(fusion)}
            seen |= {(op, info.dtype) for info in fusion.program.input_infos() if op in ours}
            seen |= {(op, dtype) for name, dtype in ops_of(fusion) if name == op}
    assert {op for op, _ in seen} == set(table)
    assert {word for _, word in seen} >= {word for _, word in wanted}
    assert len(seen & wanted) > 0.45 * len(wanted), (len(seen & wanted), len(wanted))


def test_dtypes_layouts_and_sizes_are_drawn(many):
    dtypes = collections.Counter(dtype for fusion in many for _, dtype in ops_of(fusion))
    assert set(dtypes) >= {"f32", "f64", "f16", "bf16", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "c64", "c128", "f8e4m3", "f8e5m2"}
    ranks = collections.Counter(len(shape) for fusion in many for shape in fusion.shapes)
    assert set(ranks) >= {0, 1, 2, 3, 4, 5}
    text = "\n".join(f.to_string() for f in many)
    assert "alias" in text and "contiguous" in text and "= size" in text and "f32[1" in text
    assert {len(ops_of(f)) for f in many} >= set(range(1, 9))


def test_a_fusion_keeps_what_is_asked():
    for fusion in drawn(fs.fusions(ops=["add", "sum"], max_ops=3, max_rank=2, max_elements=64, symbolic=False, in_place=False), 60):
        assert {op for op, _ in ops_of(fusion)} <= {"add", "sum", "set", "broadcast"}  # broadcast: for an axis that is kept
        assert "size" not in fusion.to_string() and "alias" not in fusion.to_string()
        assert all(len(s) <= 2 for s in fusion.shapes)
    with pytest.raises(FuseboxError):
        drawn(fs.fusions(ops=["no_such_op"]), 1)


def test_inputs_are_accepted():
    @settings(max_examples=100, phases=[Phase.generate], **EXAMPLES)
    @given(st.data())
    def run(data):
        fusion = data.draw(fs.fusions(max_ops=4))
        values = data.draw(fs.inputs(fusion))
        outputs = fusion.execute([v.clone() if isinstance(v, torch.Tensor) and v.is_contiguous() else v for v in values])
        assert len(outputs) + len(fusion._in_place) >= 1

    run()


def test_inputs_of_ones_own_fusion():
    with FusionDefinition() as fd:
        x, i = fd.define_tensor([-1, 4]), fd.define_tensor([3], dtype=DataType.Int)
        fd.add_output(fd.ops.index_select(fd.ops.mul(x, fd.define_scalar(DataType.Float)), i, 0))
    for t, index, number in drawn(fs.inputs(fd, shapes=[(5, 4), (3,)], tracks=["normals"]), 20):
        assert t.shape == (5, 4) and 0 <= int(index.min()) and int(index.max()) < 5 and isinstance(number, float)
        fd.validate([t, index, number])
    with pytest.raises(FuseboxError) as caught:
        drawn(fs.inputs(fd), 1)
    assert caught.value.code == "E0402"


# -- schedules


@pytest.fixture(scope="module")
def scheduled():
    return drawn(fs.cases(), 250)


def test_every_schedule_applies_and_nearly_all_run(scheduled, tmp_path_factory):
    outcomes, kinds = collections.Counter(), collections.Counter()
    for case in scheduled:
        copy = case.fusion.copy()
        for at, step in enumerate(case.schedule):
            if not step.startswith("rewrite") and copy.sched.steps() == case.schedule[:at] == [s for s in case.schedule[:at] if s.startswith("rewrite")]:
                copy.sched.concretize(case.inputs)
            assert copy.sched.is_applicable(step), step
            copy.sched.apply(step)
            kinds[step.split()[0]] += 1
        assert copy.sched.steps() == case.schedule and copy.sched.compile_refusal(case.inputs) is None
        outcomes[fs.check(case, out=tmp_path_factory.getbasetemp()).ran] += 1
    assert outcomes[True] >= 0.95 * len(scheduled)
    assert set(kinds) >= {"split", "merge", "reorder", "parallelize", "cache_after", "cache_before", "set_memory_type", "inline_most", "parallelize_like", "transform_like"}
    assert sum(bool(case.schedule) for case in scheduled) > 0.5 * len(scheduled)
    assert sum(len(case.schedule) >= 4 for case in scheduled) > 0.2 * len(scheduled)


def test_every_kind_of_step_has_a_rule():
    ours = {name for name in dir(fs.SchedulingMachine)}
    assert set(KINDS) <= ours
    left_out = {"rewrite", "assign", "concretize", "concretize_reshape", "set_mesh", "circular_buffer"}
    assert set(_fusebox.step_kinds()) == set(KINDS) | left_out
    with FusionDefinition() as fd:
        x = fd.define_tensor([4, 4])
        fd.add_output(fd.ops.sum(fd.ops.neg(fd.ops.exp(x)), [1]))
    moves = Moves(fd.program)
    possible = {kind: moves.possible(kind) for kind in KINDS}
    assert possible["split"] and possible["cache_after"] and possible["rfactor"] == [] and not possible["parallelize_like"] == []
    for lines in possible.values():
        for line in lines:
            fd.copy().sched.apply(line)


def test_steps_are_asked_before_they_are_taken():
    with FusionDefinition() as fd:
        y = fd.ops.neg(fd.define_tensor([6], name="x"))
        fd.add_output(y)
    before = fd.to_string()
    refusal = fd.sched.refusal(f"split %{y.name}.none by 4 -> o, i")
    assert refusal.code == "E0301" and refusal.place and not fd.sched.is_applicable(f"merge %{y.name}.i0 with %{y.name}.i0 -> m")
    with pytest.raises(FuseboxError):
        fd.sched.refusal("no step")
    assert fd.to_string() == before and fd.sched.steps() == []
    fd.sched.apply(f"split %{y.name}.i0 by 4 -> o, i\nparallelize %{y.name}.i on block.x\n")
    assert len(fd.sched.steps()) == 2 and fd.copy().to_string() == fd.to_string() != before
    with pytest.raises(FuseboxError):
        fd.sched.concretize([torch.ones(6)])


def test_a_reshape_is_scheduled_once_its_axes_are_known():
    x = torch.arange(12.0)
    with FusionDefinition() as fd:
        y = fd.ops.reshape(fd.from_pytorch(x, name="x"), [-1, 4])
        fd.add_output(fd.ops.neg(y))
    line = f"split %{fd.program.tensors()[-1]}.i1 by 3 -> o, i"
    assert not fd.sched.is_applicable(line)
    fd.sched.concretize([x])
    fd.sched.apply([line, f"set_memory_type %{y.name} in global"])
    assert fd.sched.compile_refusal([x]) is None and fd.judge([x]).outcome == "passed"


# -- the state machine, and its findings


def test_scheduling_step_by_step_finds_nothing(tmp_path):
    class Quiet(fs.SchedulingMachine):
        out = str(tmp_path)

    run_state_machine_as_test(Quiet, settings=settings(max_examples=40, stateful_step_count=15, **EXAMPLES))
    assert list(tmp_path.iterdir()) == []


def shrunk(strategy, out, count=2000):
    """The smallest failing case, and its finding."""
    last = []

    @settings(max_examples=count, phases=[Phase.generate, Phase.shrink], report_multiple_bugs=False, **EXAMPLES)
    @given(strategy)
    def judge(case):
        try:
            fs.check(case, out=out)
        except fs.Finding as finding:
            last[:] = [case, finding]
            raise

    with pytest.raises(fs.Finding) as caught:
        judge()
    assert type(caught.value) is type(last[1])
    return last


DEFECTS = ["split-swapped", "predicate-off-by-one", "extent-truncated", "reduction-init-zero"]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found_shrunk_and_kept(defect, tmp_path):
    case, finding = shrunk(fs.cases(defects=[defect]), tmp_path)
    assert len(ops_of(case.fusion)) <= 3 and len(case.schedule) <= 4, case
    assert all(extent <= 9 for shape in case.fusion.shapes for extent in shape)
    path = finding.path
    assert str(path) in str(finding) and finding.signature in str(finding) and path.parent == tmp_path
    assert fusebox.replay(path).identical
    # The file holds the smallest case, which fails in the same way.
    data = path.read_bytes()
    assert case.fusion.program.name().encode() in data and finding.signature.encode() in data
    sound = fusebox.replay(path, defects=[])
    assert not sound.identical or defect in str(data)


def test_a_machine_finds_a_defect(tmp_path):
    class Broken(fs.SchedulingMachine):
        drawn = fs.fusions(max_ops=2, defects=["split-taken-exact"])
        out = str(tmp_path)

    with pytest.raises(fs.Finding) as caught:
        run_state_machine_as_test(Broken, settings=settings(max_examples=100, stateful_step_count=10, report_multiple_bugs=False, **EXAMPLES))
    assert caught.value.path.exists()
    assert fusebox.replay(caught.value.path).identical


def test_findings_of_one_signature_are_of_one_class_and_file(tmp_path):
    x = torch.randn(33, generator=torch.Generator().manual_seed(0))
    found = []
    for op in ("neg", "neg", "exp"):
        fd = FusionDefinition(defects=["extent-truncated"])
        fd.add_output(getattr(fd.ops, op)(fd.from_pytorch(x)))
        with pytest.raises(fs.Finding) as caught:
            fs.check(fd, [x], out=tmp_path)
        found.append(caught.value)
    assert type(found[0]) is type(found[1]) is not type(found[2])
    assert len(list(tmp_path.iterdir())) == 2


def test_check_leaves_everything_alone(tmp_path):
    x = torch.zeros(3, 4)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, 1.0), t)
    name = fd.program.tensors()[-1]
    before = fd.to_string()
    assert fs.check(fd, [x], [f"split %{name}.i1 by 3 -> a, b"], out=tmp_path).ran
    assert fd.to_string() == before and x.sum() == 0 and list(tmp_path.iterdir()) == []
    with pytest.raises(FuseboxError):
        fs.check(fd, [x], [f"split %{name}.none by 3 -> a, b"], out=tmp_path)


def test_what_a_launch_refuses_is_no_finding(tmp_path):
    x = torch.ones(2048)
    with FusionDefinition() as fd:
        y = fd.ops.neg(fd.from_pytorch(x))
        fd.add_output(y)
    outcome = fs.check(fd, [x], [f"parallelize %{y.name}.i0 on block.x"], out=tmp_path)
    assert not outcome.ran and "E0405" in outcome.why and list(tmp_path.iterdir()) == []


def test_fusebox_does_without_hypothesis():
    program = """
import sys
sys.modules["hypothesis"] = None
import fusebox
try:
    import fusebox.strategies
except ImportError as e:
    print(e)
"""
    path = os.pathsep.join([str(pathlib.Path(fusebox.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True)
    assert "pip install hypothesis" in run.stdout
