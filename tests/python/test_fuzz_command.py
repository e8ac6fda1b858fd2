"""`fusebox fuzz`: campaigns and the score from the command line, their output, and the folder they write."""

import html.parser
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FUSEBOX_BUILD", ROOT / "build"))
FUSEBOX = BUILD / "bin" / "fusebox"
SWIZZLED = ROOT / "corpus" / "programs" / "swizzled_copy_1d.fir"
SOFTMAX = ROOT / "corpus" / "programs" / "softmax.fir"
# Quick, and nothing to load.
LIGHT = ["--oracle", "host-checks,text"]
DEFECT = "predicate-dropped"


def fusebox(*arguments):
    command = [str(FUSEBOX), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def fuzz(*arguments):
    """The exit code, the findings, and the summary."""
    run = fusebox("fuzz", *arguments, "--json")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert lines, run.stderr
    assert run.returncode == (1 if len(lines) > 1 else 0), run.stdout + run.stderr
    return lines[:-1], lines[-1]


def error_of(*arguments):
    run = fusebox("fuzz", *arguments, "--json")
    assert run.returncode == 2, run.stdout + run.stderr
    return json.loads(run.stdout)["error"]["code"]


needs_defects = pytest.mark.skipif("Not in this build" in fusebox("fuzz", "--help").stdout, reason="built without seeded defects")


def test_help_has_examples():
    text = fusebox("fuzz", "--help").stdout
    for word in "--time", "--runs", "--jobs", "--score", "--case", "--out", "fusebox fuzz --time 60s", "campaign.json":
        assert word in text
    assert "fuzz" in fusebox("--help").stdout


def test_lists():
    oracles = [json.loads(line) for line in fusebox("fuzz", "--list-oracles", "--json").stdout.splitlines()]
    assert {"host-checks", "aten", "text"} <= {o["oracle"] for o in oracles}
    assert all(o["summary"] and o["one_in"] > 0 for o in oracles)
    defects = [json.loads(line) for line in fusebox("fuzz", "--list-defects", "--json").stdout.splitlines()]
    assert len({d["defect"] for d in defects}) == len(defects) >= 80
    assert sum(1 for d in defects if d["restates"]) >= 20
    assert DEFECT in fusebox("fuzz", "--list-defects").stdout


def test_a_case_is_printed_and_judged(tmp_path):
    run = fusebox("fuzz", "--print-case", 4294967729)
    assert run.returncode == 0 and "fusion @" in run.stdout and "inputs @" in run.stdout
    path = tmp_path / "case.fir"
    path.write_text(run.stdout)
    assert fusebox("verify", path).returncode == 0
    findings, summary = fuzz("--case", path)
    assert not findings and summary["valid"]


def test_the_printed_case_is_the_one_of_a_campaign(tmp_path):
    findings, _ = fuzz("--runs", 100, "--jobs", 1, "--oracle", "host-checks", "--defect", DEFECT, "--out", tmp_path)
    seeds = {f["file"]: f["lineage"].split()[1] for f in findings if f["lineage"].count("\n") == 1 and f["file"]}
    assert seeds
    for file, seed in seeds.items():
        fusion = fusebox("fuzz", "--print-case", seed).stdout.split("steps @")[0]
        assert fusion in fusebox("show", file).stdout


def test_several_programs_are_judged_from_one_text(tmp_path):
    texts = [fusebox("fuzz", "--print-case", seed).stdout.replace("@f", f"@case_{seed}") for seed in (4294967729, 4294967731)]
    path = tmp_path / "batch.fir"
    path.write_text("\n".join(texts))
    findings, summary = fuzz("--case", path)
    assert not findings and summary["valid"]
    if "Not in this build" in fusebox("fuzz", "--help").stdout:
        return
    findings, _ = fuzz("--case", path, "--defect", "digest-dtype")
    assert findings and all(f["message"].startswith("@case_42949677") for f in findings)


def test_blocks_that_wait_for_one_another_stay_within_the_memory_of_a_process():
    """The host executor refuses 4096 blocks of 55 KB of shared memory, which all would have theirs at once."""
    case = ROOT / "tests/fuzz/findings/blocks_that_wait_with_much_shared_memory.fir"
    findings, summary = fuzz("--case", case, "--oracle", "host-checks", "--memory", 1500)
    assert not findings and not summary["valid"]


@needs_defects
def test_a_refusal_without_a_schedule_is_a_finding_if_aten_takes_the_program(tmp_path):
    path = tmp_path / "case.fir"
    path.write_text("""fusion @f {
  %m, %n = size
  %x = input f32[%m] contiguous
  %y = input f32[%n] contiguous
  %e = expand %x to [%n]
  %z = neg %e
  output %z
  output %y
}
inputs @f host {
  %x = f32[3] normal seed 1
  %y = f32[3] normal seed 2
}
""")
    findings, _ = fuzz("--case", path, "--defect", "symbolic-broadcast")
    assert "unfused E0407" in [" ".join(f["signature"].split()[:2]) for f in findings]
    findings, summary = fuzz("--case", path)
    assert not findings and summary["valid"]


@needs_defects
def test_a_program_is_judged_under_a_defect():
    findings, _ = fuzz("--case", SWIZZLED, "--defect", "almost-exact-equal-extent")
    assert "host-checks E0413" in [" ".join(f["signature"].split()[:2]) for f in findings]
    assert all(f["message"] for f in findings)
    assert fusebox("fuzz", "--case", SWIZZLED).stdout.endswith("nothing found\n")


@pytest.mark.parametrize("arguments, code", [
    (["--time", "5x"], "E0440"),
    (["--time", "-3"], "E0440"),
    (["--jobs", "-1"], "E0440"),
    (["--runs", "-1"], "E0440"),
    (["--runs", "0"], "E0440"),
    (["--seed", "-1"], "E0440"),
    (["--stop-after", "-1"], "E0440"),
    (["--memory", "-1"], "E0440"),
    (["--print-case", "-1"], "E0440"),
    (["--memory", "1", "--runs", "3"], "E0406"),
    (["--on", "tpu"], "E0440"),
    (["--oracle", "astrology"], "E0102"),
    (["--defect", "no-such-defect"], "E0102"),
    (["--case", "missing.fir"], "E0430"),
    (["--case", str(SOFTMAX), "--runs", "3"], "E0440"),
    (["--score", "--case", str(SOFTMAX)], "E0440"),
    (["--score", "--on", "cuda"], "E0440"),
    (["--no-such-option"], "E0440"),
])
def test_wrong_options(arguments, code):
    assert error_of(*arguments) == code


def test_no_gpu_is_said():
    run = fusebox("fuzz", "--runs", 1, "--on", "cuda", "--json", *LIGHT)
    if run.returncode != 2:
        pytest.skip("there is a GPU")
    assert json.loads(run.stdout)["error"]["code"] in ("E0420", "E0423")


def test_the_number_of_processes_does_not_matter():
    runs = [fuzz("--runs", 600, "--seed", 5, "--jobs", jobs, *LIGHT)[1] for jobs in (1, 2)]
    for run in runs:
        for timed in "seconds", "cases_per_second":
            del run[timed]
    assert runs[0] == runs[1] and runs[0]["cases"] == 600


class Page(html.parser.HTMLParser):
    """Checks that the page is well-formed, and collects its references."""

    VOID = {"meta", "img", "br", "link"}

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.tags = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def folder(tmp_path):
    """A campaign with a finding."""
    findings, summary = fuzz("--runs", 400, "--out", tmp_path / "found", "--defect", DEFECT, *LIGHT)
    assert findings and summary["findings"] == len(findings)
    return tmp_path / "found"


@needs_defects
def test_the_folder(folder):
    state = json.loads((folder / "campaign.json").read_text())
    assert state["configuration"]["defects"] == DEFECT and state["statistics"]["cases"] == 400
    bundles = sorted(folder.glob("findings/*.fuse"))
    assert len(bundles) == len(state["statistics"]["findings"])
    shown = fusebox("show", bundles[0]).stdout
    assert "option finding: " in shown and "option lineage: seed " in shown
    findings, summary = fuzz("--case", bundles[0])
    assert summary["recorded"] in [f["signature"] for f in findings] and summary["defects"] == DEFECT


@needs_defects
def test_the_report(folder):
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert "svg" in page.tags and "table" in page.tags
    for link in page.links:
        assert link.startswith("data:image/svg+xml;base64,") or (folder / link).exists(), link
    assert any(link.startswith("findings/") for link in page.links)
    assert any(link.startswith("data:") for link in page.links)
    assert "rows not produced yet" in text
    assert "://" not in re.sub(r"data:[^\"]*", "", text)


@needs_defects
def test_it_goes_on(folder):
    again = ["--out", folder, "--defect", DEFECT, *LIGHT]
    _, summary = fuzz("--runs", 400, *again)
    assert summary["cases"] == 400
    _, more = fuzz("--runs", 600, *again)
    _, whole = fuzz("--runs", 600, "--defect", DEFECT, *LIGHT)
    for timed in "seconds", "cases_per_second", "report":
        del more[timed], whole[timed]
    assert more == whole
    assert error_of("--runs", 10, "--seed", 9, *again) == "E0440"
    (folder / "campaign.json").write_text("{")
    assert error_of("--runs", 10, *again) == "E0101"


def test_an_interrupt_ends_it_cleanly(tmp_path):
    command = [str(FUSEBOX), "fuzz", "--time", "10m", "--jobs", "2", "--out", str(tmp_path), *LIGHT]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 1), out + err
    assert "the same command goes on from here" in err
    state = json.loads((tmp_path / "campaign.json").read_text())
    assert state["statistics"]["cases"] > 0 and (tmp_path / "report.html").exists()


def test_the_time_is_kept():
    start = time.monotonic()
    _, summary = fuzz("--time", "5s", *LIGHT)
    assert 4.9 < summary["seconds"] < 5.5 and summary["cases"] > 0
    assert time.monotonic() - start < 8


@needs_defects
def test_it_stops_when_enough_is_found(tmp_path):
    command = ["--time", "2m", "--stop-after", 1, "--jobs", 2, "--out", tmp_path, "--defect", DEFECT, *LIGHT]
    findings, summary = fuzz(*command)
    # Each process stops long before the end of a block.
    assert 1 <= len(findings) <= 4 and summary["cases"] < 512 and summary["seconds"] < 20
    assert pathlib.Path(findings[0]["file"]).exists()


@needs_defects
def test_the_score(tmp_path):
    command = ["fuzz", "--score", "--seeds", 2, "--time", "20s", "--jobs", 2, "--defect", DEFECT, "--defect", "split-swapped"]
    run = fusebox(*command, "--json", "--out", tmp_path)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, run.stdout + run.stderr
    assert [r["defect"] for r in rows[:-1]] == [DEFECT, "split-swapped"]
    for row in rows[:-1]:
        assert row["detected"] == row["seeds"] == 2 and row["median_reached"] <= row["median_cases"]
        assert (tmp_path / (row["defect"] + ".fuse")).exists()
    assert rows[-1]["detected"] == 2
    assert (tmp_path / "score.jsonl").read_text().splitlines() == run.stdout.splitlines()[:-1]
    text = fusebox("fuzz", "--score", "--seeds", 1, "--runs", 3, "--defect", "split-swapped", "--oracle", "text")
    assert text.returncode == 1 and "detected 0 of 1" in text.stdout
