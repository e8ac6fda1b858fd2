"""`fusebox reduce`: turns a failing file into a small one that fails in the same way."""

import json
import statistics

import pytest

from support import HAS_ATEN, ROOT, fusebox, written

SOFTMAX = ROOT / "corpus" / "programs" / "softmax.fir"
GOLDEN = ROOT / "corpus" / "golden" / "v1_pointwise.fuse"

LARGE = (ROOT / "tests" / "support" / "large_case.fir").read_text()

pytestmark = pytest.mark.skipif(not HAS_ATEN, reason="built without ATen")


def reduced(file, out, *arguments):
    result = fusebox("reduce", file, "-o", out, "--json", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(name="large")
def large_file(tmp_path):
    path = tmp_path / "large.fir"
    path.write_text(LARGE)
    return path


def test_a_program_that_a_defect_breaks_becomes_small(large, tmp_path):
    out = tmp_path / "small.fir"
    row = reduced(large, out, "--defect", "predicate-dropped")
    assert row["finished"] and row["needs_defects"]
    assert row["before"]["ops"] == 4 and row["before"]["steps"] == 8
    assert row["after"]["ops"] == 1 and row["after"]["steps"] <= 3 and row["after"]["elements"] <= 8
    assert row["factor"] >= 25 and row["seconds"] < 60
    # It fails in the same way, and only with the defect.
    assert row["signature"] == reduced(out, tmp_path / "again.fir", "--defect", "predicate-dropped")["signature"]
    assert fusebox("run", out, "--check", "--on", "host", "--defect", "predicate-dropped").returncode == 1
    assert fusebox("run", out, "--check", "--on", "host").returncode == 0
    # A second reduction removes nothing.
    assert (tmp_path / "again.fir").read_text() == out.read_text()


def test_a_bundle_keeps_defect_signature_and_failure(large, tmp_path):
    bundle, smaller = tmp_path / "small.fuse", tmp_path / "smaller.fuse"
    row = reduced(large, bundle, "--defect", "predicate-dropped")
    shown = fusebox("show", bundle).stdout
    assert "option defects: predicate-dropped" in shown and f"option finding: {row['signature']}" in shown
    assert fusebox("replay", bundle).returncode == 0
    # The bundle holds the signature and the defects, so no option is needed.
    assert reduced(bundle, smaller)["signature"] == row["signature"]


def test_findings_of_a_campaign_are_reduced(tmp_path):
    found = tmp_path / "found"
    fusebox("fuzz", "--runs", 300, "--seed", 1, "--defect", "split-swapped", "--stop-after", 9, "--out", found)
    bundles = sorted(found.rglob("*.fuse"))[:9]
    assert len(bundles) == 9
    rows = [reduced(bundle, tmp_path / ("small_" + bundle.name)) for bundle in bundles]
    for bundle, row in zip(bundles, rows, strict=True):
        # It is still the same finding.
        assert f"option finding: {row['signature']}" in fusebox("show", bundle).stdout
        assert row["finished"] and row["seconds"] < 60
    assert statistics.median(row["after"]["ops"] for row in rows) <= 3
    assert statistics.median(row["after"]["steps"] for row in rows) <= 4
    assert statistics.median(row["factor"] for row in rows) >= 25


def test_a_finding_of_several_segments_is_reduced(tmp_path):
    # Two segments, and an output over an input.
    row = reduced(ROOT / "tests" / "python" / "several_segments.fir", tmp_path / "small.fir", "--defect", "split-swapped")
    assert row["signature"] == "aten differs bitwise_left_shift"
    assert row["before"]["ops"] == 4 and row["before"]["steps"] == 21
    assert row["after"]["ops"] <= 3 and row["after"]["steps"] <= 4 and row["factor"] >= 25


def test_what_does_not_fail_is_not_reduced(tmp_path):
    out = tmp_path / "out.fir"
    result = fusebox("reduce", SOFTMAX, "-o", out)
    assert result.returncode == 1 and "nothing to reduce" in result.stdout
    assert not out.exists()
    assert fusebox("reduce", GOLDEN, "-o", out, "--json").returncode == 1


def test_another_failure_than_the_named_one_is_not_reduced(large, tmp_path):
    out = tmp_path / "out.fir"
    result = fusebox("reduce", large, "-o", out, "--defect", "predicate-dropped", "--signature", "aten differs lgamma")
    assert result.returncode == 1 and "--signature" in result.stdout
    assert not out.exists()


def test_wrong_use(large, tmp_path):
    out = tmp_path / "out.fir"
    assert fusebox("reduce", large).returncode == 2
    assert fusebox("reduce", "-o", out).returncode == 2
    assert fusebox("reduce", tmp_path / "none.fuse", "-o", out).returncode == 2
    assert fusebox("reduce", large, "-o", out, "--time", "soon").returncode == 2
    assert fusebox("reduce", large, "-o", out, "--defect", "none-such").returncode == 2
    assert fusebox("reduce", ROOT / "README.md", "-o", out).returncode == 2
    assert fusebox("reduce", large, "-o", tmp_path / "no" / "folder.fir", "--defect", "predicate-dropped").returncode == 2
    assert not out.exists()


def test_time_ends_it_with_the_best_so_far(large, tmp_path):
    out = tmp_path / "out.fir"
    row = reduced(large, out, "--defect", "predicate-dropped", "--time", "0.01s")
    assert not row["finished"]
    assert fusebox("run", out, "--check", "--on", "host", "--defect", "predicate-dropped").returncode == 1


def test_the_rows_are_listed():
    rows = [json.loads(line)["reduction"] for line in fusebox("reduce", "--list", "--json").stdout.splitlines()]
    assert {"outputs", "cut", "steps", "axes", "extents", "values"} <= set(rows)
    assert "fusebox reduce" in fusebox("reduce", "--help").stdout


RESHAPED = """fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %k = input index
  %j = input index
  %p = reshape %x to [%k, %j]
  %y = exp %p
  output %y
}
inputs @f host {
  %x = f32[36] normal seed 1
  %k = 1
  %j = 36
}
"""


def test_steps_that_decide_axes_of_a_record_are_no_schedule(tmp_path):
    program, record = written(tmp_path, RESHAPED), tmp_path / "record.fuse"
    assert fusebox("run", program, "--on", "host", "--record", record).returncode == 0
    judged = fusebox("fuzz", "--case", record)
    assert judged.returncode == 0 and "nothing found" in judged.stdout, judged.stdout


def test_inputs_that_a_case_cannot_hold_are_named(tmp_path):
    program, values, record = written(tmp_path, RESHAPED), tmp_path / "x.npy", tmp_path / "record.fuse"
    assert fusebox("run", program, "--on", "host", "--output", f"y={values}").returncode == 0
    program.write_text(RESHAPED.replace("f32[%n]", "f32[%m, %n]").replace("%n = size", "%n, %m = size"))
    assert fusebox("run", program, "--on", "host", "--input", f"x={values}", "--record", record).returncode == 0
    assert "as bytes" in fusebox("reduce", record, "-o", tmp_path / "out.fir").stderr
    assert "as bytes" in fusebox("fuzz", "--case", record).stderr
