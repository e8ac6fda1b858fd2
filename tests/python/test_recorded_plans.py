"""The plan of a run: what a bundle, a text or a list of steps keeps of it, and what another run takes from them."""

import pytest

from support import HAS_ATEN, fusebox, objects, only, twice, written

needs_aten = pytest.mark.skipif(not HAS_ATEN, reason="built without ATen")


SCHEDULED = """scheduled @f {
  %n = size
  %x = input f32[i0 iter %n, i1 iter 4] contiguous
  %y = exp %x : f32[i0 iter %n, i1 iter 4] {
    o iter, t iter = split i0 by 32 inner
    loop [o grid.x, t block.x, i1]
    inline_at i1
  }
  %z = sum %y over [1] : f32[i0 iter %n, i1 reduce 4] {
    o iter, t iter = split i0 by 32 inner
    loop [o grid.x, t block.x, i1]
  }
  output %z
}
inputs @f host {
  %x = f32[37, 4] normal seed 1
}
"""


@needs_aten
@pytest.mark.parametrize("plan", [[], ["--unfused"]])
def test_a_scheduled_program_has_its_schedule(tmp_path, plan):
    program, record = written(tmp_path, SCHEDULED), tmp_path / "record.fuse"
    run = only(fusebox("run", program, "--on", "host", "--check", "--record", record, "--json", *plan))
    assert run["ok"] and run["kernels"] == 1
    assert only(fusebox("replay", record, "--json"))["identical"]
    assert "split i0 by 32" in fusebox("show", program, "--level", "scheduled").stdout


GATHERED = """fusion @g {
  %n, %m = size
  %x = input c64[%m, %n] contiguity [false, false]
  %i = input i64[%n]
  %sf = exp %x
  %y = mul %sf, %sf
  %q = index_select %y, %i axis 1
  output %q
}
inputs @g host {
  %x = c64[5, 6] strides [1, 5] normal seed 1
  %i = i64[6] integers 0 6 seed 5
}
"""


# An index outside, and a seeded defect that makes the automatic plan fail.
@needs_aten
@pytest.mark.parametrize(
    "given, plan", [(["--input", "i=i64[6] integers 7 9 seed 1"], "steps"), (["--defect", "plan-steps-of-other"], "automatic")]
)
@pytest.mark.parametrize("inference", [[], ["--no-infer-contiguity"]])
def test_a_failure_replays_with_the_plan_that_failed(tmp_path, given, plan, inference):
    program, record = written(tmp_path, GATHERED), tmp_path / "record.fuse"
    run = fusebox("run", program, "--on", "host", "--record", record, *given, *inference)
    assert run.returncode != 0
    assert f"option plan: {plan}\n" in fusebox("show", record).stdout
    replay = fusebox("replay", record, "--json")
    assert replay.returncode == 0 and only(replay)["identical"], replay.stdout


def test_convert_takes_the_schedule_that_ran(tmp_path):
    steps, record, back = tmp_path / "steps.txt", tmp_path / "record.fuse", tmp_path / "back.fir"
    program = written(tmp_path, twice() + "steps @twice {\n  split %y.i0 by 4 -> o, t\n}\n")
    steps.write_text("split %y.i0 by 3 -> o, t\n")
    for given, wanted in (["--steps", steps], "by 3"), (["--precision", "fast"], "fast"), (["--unfused"], "assign"):
        assert fusebox("run", program, "--on", "host", "--record", record, *given).returncode == 0
        assert fusebox("convert", record, back).returncode == 0
        text = back.read_text()
        assert wanted in text


CHAIN = """fusion @chain {
  %n = size
  %x = input f32[%n, 8] contiguous
  %s = input f32
  %y = mul %x, %s
  %e = exp %y
  %z = sum %e over [1]
  output %z
}
steps @chain {
  split %z.i0 by 4 -> o, t
  parallelize %z.o on grid.x
  parallelize %z.t on block.x
  transform_like %z to []
  parallelize_like %z to []
  inline_most of []
}
inputs @chain host {
  %x = f32[7, 8] uniform -1.0 1.0 seed 3
  %s = 2.0_f32
}
"""


def test_a_bundle_runs_by_its_recorded_plan(tmp_path):
    program, steps, record = written(tmp_path, CHAIN), tmp_path / "other.txt", tmp_path / "it.fuse"
    steps.write_text("split %z.i0 by 2 -> o, t\nparallelize %z.o on grid.x\ntransform_like %z to []\nparallelize_like %z to []\ninline_most of []\n")

    def stages(*arguments):
        ran = fusebox("run", *arguments, "--on", "host", "--json")
        assert ran.returncode == 0, ran.stderr
        return only(ran)["stages"]

    own, unfused, automatic = stages(program), stages(program, "--unfused"), stages(program, "--plan", "automatic")
    for given in ["--steps", steps], ["--unfused"], ["--plan", "automatic"], ["--precision", "fast"]:
        recorded = stages(program, "--record", record, *given)
        assert stages(record) == recorded != own
        assert stages(record, "--unfused") == unfused and stages(record, "--plan", "automatic") == automatic
        assert stages(record, "--precision", "exact")["kernel"] != stages(record, "--precision", "fast")["kernel"]
    assert "recorded plan unless" in fusebox("run", "--help").stdout


@pytest.mark.parametrize("more", [[], ["--precision", "fast"]])
def test_the_unfused_plan_is_kept_in_steps_and_texts(tmp_path, more):
    program, steps, record, text = written(tmp_path, CHAIN), tmp_path / "steps.txt", tmp_path / "it.fuse", tmp_path / "back.fir"
    first = only(fusebox("run", program, "--on", "host", "--unfused", *more, "--save-steps", steps, "--record", record, "--json"))
    assert first["kernels"] == 3 and steps.read_text().count("assign") == 3
    assert fusebox("convert", record, text).returncode == 0
    for again in [program, "--steps", steps], [text], [record]:
        found = only(fusebox("run", *again, "--on", "host", "--json"))
        assert (found["stages"], found["outputs"]) == (first["stages"], first["outputs"])


def test_bench_times_a_bundle_by_its_recorded_plan(tmp_path):
    program, record = written(tmp_path, CHAIN), tmp_path / "it.fuse"

    def launches(*arguments):
        _, row = objects(fusebox("bench", *arguments, "--on", "host", "--runs", 1, "--json"))
        return row["timing"]["launches"]

    assert fusebox("run", program, "--on", "host", "--unfused", "--record", record).returncode == 0
    assert (launches(program), launches(record), launches(record, "--plan", "automatic")) == (1, 3, 1)
    assert fusebox("run", program, "--on", "host", "--record", record).returncode == 0
    assert (launches(record), launches(record, "--unfused")) == (1, 3)


@needs_aten
def test_a_run_by_aten_records_no_schedule(tmp_path):
    # Without steps in its text, the program has no schedule, rather than an empty one, which is a single kernel.
    unscheduled = CHAIN[: CHAIN.index("steps @chain")] + CHAIN[CHAIN.index("inputs @chain") :]
    record, text = tmp_path / "it.fuse", tmp_path / "back.fir"
    for source, has_steps in (unscheduled, False), (CHAIN, True):
        program = written(tmp_path, source)
        assert fusebox("run", program, "--on", "aten", "--record", record).returncode == 0
        assert "option plan: aten\n" in fusebox("show", record).stdout
        assert fusebox("convert", record, text).returncode == 0
        assert ("steps @chain" in text.read_text()) == has_steps
        own, of_text = (only(fusebox("run", file, "--on", "host", "--json"))["stages"] for file in (program, text))
        assert of_text == own
        assert only(fusebox("replay", record, "--on", "host", "--json"))["identical"]
