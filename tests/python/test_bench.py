"""`run --time` and `fusebox bench`: the form of what they print, bytes counted by hand, comparisons with earlier runs, and refusals. No test
asserts a time."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from support import PROGRAMS, fusebox

TWICE = """fusion @twice {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %b = input bf16[%n] contiguous
  %unused = input f32[%n] contiguous
  %bf = cast %b as f32
  %bb = broadcast %bf mask [1, 0]
  %y = add %x, %bb
  %s = sum %y over [1]
  output %y
  output %s
}
inputs @twice host {
  %x = f32[3, 5] normal seed 1
  %b = bf16[5] normal seed 2
  %unused = f32[5] normal seed 3
}
"""
READ, WRITTEN = 3 * 5 * 4 + 5 * 2, 3 * 5 * 4 + 3 * 4


@pytest.fixture
def twice(tmp_path):
    path = tmp_path / "twice.fir"
    path.write_text(TWICE)
    return path


def lines(run):
    return [json.loads(line) for line in run.stdout.splitlines()]


def error_code(run):
    assert run.returncode == 2, run.stdout + run.stderr
    return lines(run)[-1]["error"]["code"]


def test_run_time_prints_the_parts_of_a_run(twice):
    plain = fusebox("run", twice, "--on", "host")
    timed = fusebox("run", twice, "--on", "host", "--time", 3)
    assert timed.returncode == 0, timed.stderr
    assert timed.stdout.startswith(plain.stdout)
    rest = timed.stdout[len(plain.stdout):]
    assert rest.startswith("timed over 3 runs, by the wall clock of the host executor")
    assert "no GPU was measured" in rest and "not known: it is measured on a GPU" in rest
    for word in ("whole", "kernels", "host", "must move"):
        assert f"\n  {word} " in rest
    assert f"{READ + WRITTEN} bytes: {READ} bytes read, {WRITTEN} bytes written" in rest


def test_run_time_as_json(twice):
    (whole,) = lines(fusebox("run", twice, "--on", "host", "--time", 5, "--json"))
    timing = whole["timing"]
    assert (timing["executor"], timing["clock"], timing["runs"]) == ("host", "wall", 5)
    assert (timing["read_bytes"], timing["written_bytes"]) == (READ, WRITTEN)
    assert all(timing[key] is None for key in ("gpu", "copy_gb_s", "empty_us", "floor_us", "fraction"))
    assert timing["launches"] == sum(kernel["launches"] for kernel in timing["kernels"]) == whole["kernels"]
    for spread in (timing["whole_us"], timing["kernels_us"], timing["host_us"], *(k["us"] for k in timing["kernels"])):
        assert set(spread) == {"median", "p10", "p90"} and 0 <= spread["p10"] <= spread["median"] <= spread["p90"]
    (plain,) = lines(fusebox("run", twice, "--on", "host", "--json"))
    assert "timing" not in plain


def test_a_run_that_fails_is_not_timed(twice, tmp_path):
    steps = tmp_path / "steps.txt"
    steps.write_text("split %y.missing by 2 -> a, b\n")
    run = fusebox("run", twice, "--on", "host", "--steps", steps, "--time", 3, "--json")
    assert run.returncode == 2 and "timing" not in lines(run)[0]


def test_time_is_refused_for_aten_and_for_no_run(twice):
    assert error_code(fusebox("run", twice, "--on", "aten", "--time", 3, "--json")) in ("E0440", "E0423")
    assert error_code(fusebox("run", twice, "--on", "host", "--time", 0, "--json")) == "E0440"


def test_bench_prints_a_line_a_program():
    files = [PROGRAMS / "softmax.fir", PROGRAMS / "rope.fir"]
    run = fusebox("bench", *files, "--on", "host", "--runs", 2)
    assert run.returncode == 0, run.stderr
    head, columns, *rows = run.stdout.splitlines()
    assert head.startswith("the host executor") and "no GPU was measured" in head
    assert columns.split()[0] == "program" and [row.split()[0] for row in rows] == ["softmax", "rope"]
    # The slowest program has a whole bar.
    assert max(row.count("█") for row in rows) == 24 and sum(row.endswith(" 1.00") for row in rows) == 1
    assert "1.6 kB" in rows[0]  # bf16[3, 133], read and written


def test_bench_as_json_and_what_was_not_measured(twice):
    head, row = lines(fusebox("bench", twice, "--on", "host", "--runs", 2, "--threads", 2, "--json"))
    assert head["bench"] == {"executor": "host", "gpu": "", "where": "host", "threads": 2, "unfused": False}
    assert head["copy_gb_s"] is None and head["empty_us"] is None and head["runs"] == 2
    assert row["program"] == "twice" and row["timing"]["read_bytes"] == READ and "ratio" not in row


def test_unfused_has_a_kernel_for_each_op():
    (_, own), (_, unfused) = (lines(fusebox("bench", PROGRAMS / "softmax.fir", "--on", "host", "--runs", 1, *more, "--json"))
                              for more in ([], ["--unfused"]))
    assert own["timing"]["launches"] == 1 < unfused["timing"]["launches"]
    assert own["timing"]["read_bytes"] == unfused["timing"]["read_bytes"]


def test_where_chooses_the_default_inputs(twice):
    assert error_code(fusebox("bench", twice, "--on", "host", "--where", "gpu", "--json")) == "E0402"
    twice.write_text(TWICE + TWICE[TWICE.index("inputs"):].replace(" host {", " gpu {").replace("3, 5", "4, 5"))
    _, row = lines(fusebox("bench", twice, "--on", "host", "--where", "gpu", "--runs", 1, "--json"))
    assert row["timing"]["written_bytes"] == 4 * 5 * 4 + 4 * 4


def test_a_bundle_is_timed_on_its_recorded_inputs(twice, tmp_path):
    bundle = tmp_path / "b.fuse"
    assert fusebox("run", twice, "--on", "host", "--input", "x=f32[7, 5] normal seed 1", "--record", bundle).returncode == 0
    _, row = lines(fusebox("bench", bundle, "--on", "host", "--runs", 1, "--json"))
    assert row["timing"]["written_bytes"] == 7 * 5 * 4 + 7 * 4


def test_one_bad_file_does_not_end_the_others(twice, tmp_path):
    run = fusebox("bench", tmp_path / "none.fir", twice, "--on", "host", "--runs", 1)
    assert run.returncode == 2 and "E0430" in run.stdout and "twice" in run.stdout
    _, bad, good = lines(fusebox("bench", tmp_path / "none.fir", twice, "--on", "host", "--runs", 1, "--json"))
    assert bad["error"]["code"] == "E0430" and "timing" in good


def earlier(path, twice, factor, **changes):
    """The output of a run, with its medians multiplied."""
    head, row = lines(fusebox("bench", twice, "--on", "host", "--runs", 2, "--json"))
    head["bench"].update(changes)
    row["timing"]["whole_us"]["median"] *= factor
    path.write_text(json.dumps(head) + "\n" + json.dumps(row) + "\n")
    return path


def test_against_a_much_faster_run_is_a_slowdown(twice, tmp_path):
    before = earlier(tmp_path / "before.json", twice, 1e-3)
    run = fusebox("bench", twice, "--on", "host", "--runs", 2, "--against", before)
    assert run.returncode == 1
    assert "SLOWER twice:" in run.stdout and "1 compared, 1 slower and 0 faster by more than 10 %, 0 not there" in run.stdout
    _, row = lines(fusebox("bench", twice, "--on", "host", "--runs", 2, "--against", before, "--json"))
    assert row["slower"] is True and row["ratio"] > 10
    assert row["before_us"] == pytest.approx(json.loads(before.read_text().splitlines()[1])["timing"]["whole_us"]["median"])


def test_a_tolerance_covers_a_slowdown_and_a_speedup_is_none(twice, tmp_path):
    before = earlier(tmp_path / "before.json", twice, 1e-2)
    assert fusebox("bench", twice, "--on", "host", "--runs", 2, "--against", before, "--tolerance", 1000).returncode == 0
    before = earlier(tmp_path / "slow.json", twice, 1e4)
    run = fusebox("bench", twice, "--on", "host", "--runs", 2, "--against", before)
    assert run.returncode == 0 and "faster twice:" in run.stdout


def test_against_a_run_without_the_program(twice, tmp_path):
    before = earlier(tmp_path / "before.json", twice, 1)
    run = fusebox("bench", PROGRAMS / "softmax.fir", "--on", "host", "--runs", 1, "--against", before)
    assert run.returncode == 0 and "0 compared, 0 slower and 0 faster by more than 10 %, 1 not there" in run.stdout


@pytest.mark.parametrize("change", [{"executor": "cuda"}, {"gpu": "another"}, {"where": "gpu"}, {"threads": 3}, {"unfused": True}])
def test_runs_of_another_kind_are_not_compared(twice, tmp_path, change):
    before = earlier(tmp_path / "before.json", twice, 1, **change)
    assert error_code(fusebox("bench", twice, "--on", "host", "--against", before, "--json")) == "E0440"


@pytest.mark.parametrize("text, code", [("", "E0112"), ("{", "E0101"), ('{"bench":{}}', "E0112"), ('{"something":1}', "E0112")])
def test_a_damaged_earlier_run_is_refused(twice, tmp_path, text, code):
    before = tmp_path / "before.json"
    before.write_text(text)
    assert error_code(fusebox("bench", twice, "--on", "host", "--against", before, "--json")) == code
    assert error_code(fusebox("bench", twice, "--on", "host", "--against", tmp_path / "none", "--json")) == "E0430"


def test_the_plot_is_well_formed_and_has_every_program(tmp_path, twice):
    plot = tmp_path / "roofline.svg"
    assert fusebox("bench", twice, PROGRAMS / "softmax.fir", "--on", "host", "--runs", 1, "--plot", plot).returncode == 0
    root = ElementTree.parse(plot).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == space + "svg"
    assert len(root.findall(f".//{space}circle")) == 2
    texts = "\n".join(t.text or "" for t in root.iter(space + "text"))
    assert "softmax" in texts and "twice" in texts and "no GPU was measured: no roof" in texts
    assert not [p for p in root.iter(space + "path") if p.get("class") == "roof"]


def test_usage():
    assert error_code(fusebox("bench", "--json")) == "E0440"
    assert error_code(fusebox("bench", PROGRAMS / "softmax.fir", "--on", "aten", "--json")) == "E0440"
    assert error_code(fusebox("bench", PROGRAMS / "softmax.fir", "--tolerance", "-1", "--json")) == "E0440"
    assert "bench" in fusebox("--help").stdout
