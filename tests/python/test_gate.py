"""The gate: which bundles pass or fail, what blessing keeps, and that no bundle stops the others."""

import json
import os
import pathlib
import re
import resource
import shutil
from xml.etree import ElementTree

import pytest

import support
from support import ROOT

GOLDEN = ROOT / "corpus" / "golden"
REGRESS = ROOT / "corpus" / "regress"
REASON = "indices are folded differently\nand nobody minds"

SMALL = support.twice(54321)


def fusebox(*arguments, ci="", **options):
    return support.fusebox(*arguments, env={**os.environ, "CI": ci}, **options)


def gate(*arguments, **options):
    """The exit code, and the results by the bundles' names."""
    run = fusebox("gate", *arguments, "--json", **options)
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert all("bundle" in r for r in results), run.stdout + run.stderr
    assert run.returncode == (0 if all(r["ok"] for r in results) else 1)
    return {pathlib.Path(r["bundle"]).name: r for r in results}


def error_of(*arguments, **options):
    run = fusebox("gate", *arguments, "--json", **options)
    assert run.returncode == 2
    return json.loads(run.stdout)["error"]["code"]


def replace(path, old, new):
    data = path.read_bytes()
    assert old in data and len(old) == len(new)
    path.write_bytes(data.replace(old, new))


@pytest.fixture
def folder(tmp_path):
    """Three bundles of one run, one in a folder below."""
    program, folder = tmp_path / "twice.fir", tmp_path / "bundles"
    program.write_text(SMALL)
    (folder / "below").mkdir(parents=True)
    assert fusebox("run", program, "--on", "host", "--record", folder / "b.fuse").returncode == 0
    for copy in "c.fuse", "below/a.fuse":
        shutil.copy(folder / "b.fuse", folder / copy)
    (folder / "notes.txt").write_text("no bundle")
    return folder


@pytest.fixture
def bug(folder):
    """A failure under a seeded defect, which a build without any skips."""
    if "Not in this build" in fusebox("run", "--help").stdout:
        pytest.skip("built without seeded defects")
    return pathlib.Path(shutil.copy(REGRESS / "predicate_dropped.fuse", folder / "bug.fuse"))


def fix(path):
    """As if the bug in lowering had been fixed: the replay finds no option `defects`."""
    replace(path, b"defects", b"defectz")


def break_again(path):
    replace(path, b"defectz", b"defects")


def change_digest(path, stage):
    digest = bytes.fromhex(stage_digests(path)[stage])
    orders = digest, digest[::-1], digest[7::-1] + digest[:7:-1]  # the ways in which a file may store its two words
    replace(path, next(order for order in orders if order in path.read_bytes()), bytes(16))


def stage_digests(path):
    return dict(re.findall(r"^// digest (\w+) +(\w+)$", fusebox("show", path).stdout, re.M))


def make_slow(path):
    """Gives it many more elements than were recorded: minutes of work."""
    replace(path, (54321).to_bytes(8, "little"), (200_000_000).to_bytes(8, "little"))


# -- verdicts


def test_bundles_that_replay_pass_in_the_order_of_their_names(folder):
    results = gate(folder)
    assert list(results) == ["b.fuse", "a.fuse", "c.fuse"]
    for r in results.values():
        assert r["ok"] and r["status"] == "passed" and r["first_difference"] is None and r["executor"] == "host" and r["program"] == "twice"
        assert set(r["stages"].values()) == {"identical"} and not r["records_bug"]
    run = fusebox("gate", folder)
    assert run.returncode == 0 and re.fullmatch(r"gate: 3 bundles in [\d.]+ s: 3 passed\n", run.stdout)


def test_files_and_folders_may_be_mixed_and_each_counts_once(folder):
    assert list(gate(folder / "c.fuse", folder, folder / "below")) == ["b.fuse", "a.fuse", "c.fuse"]


def test_a_stage_that_differs(folder):
    change_digest(folder / "b.fuse", "outputs")
    results = gate(folder)
    assert [r["status"] for r in results.values()] == ["different", "passed", "passed"]
    assert results["b.fuse"]["first_difference"] == "outputs"
    assert [(c["stage"], c["was"]) for c in results["b.fuse"]["changes"]] == [("outputs", "0" * 32)]
    run = fusebox("gate", folder)
    assert run.returncode == 1 and "different " in run.stdout and "differs at outputs" in run.stdout and "2 passed, 1 different" in run.stdout


def test_only_the_stages_that_are_named_count(folder):
    change_digest(folder / "b.fuse", "source")
    assert not gate(folder)["b.fuse"]["ok"]
    result = gate(folder, "--only", "kernel", "--only", "outputs")["b.fuse"]
    assert result["ok"] and list(result["stages"]) == ["kernel", "outputs"]


def test_every_stage_of_a_run_can_be_named(folder):
    stages = list(gate(folder)["b.fuse"]["stages"])
    assert {"scheduled", "plan", "kernel"} <= set(stages)
    for stage in stages:
        result = gate(folder / "b.fuse", "--only", stage)["b.fuse"]
        assert result["ok"] and list(result["stages"]) == [stage]


def test_a_known_bug_passes_while_it_is_there(bug):
    result = gate(bug)["bug.fuse"]
    assert result["status"] == "passed" and result["records_bug"] and result["message"].startswith("fails as recorded: E0410")
    assert "1 passed (1 of them bugs, as recorded)" in fusebox("gate", bug).stdout


def test_a_bug_that_fails_in_another_way_does_not_pass(bug):
    result = gate(bug, "--defect", "split-swapped")["bug.fuse"]
    assert result["status"] == "different" and "was recorded with E0410" in result["message"] and "gives E0417" in result["message"]
    assert "kernel (- recorded, + now):" in result["difference"] or result["first_difference"] == "kernel"


def test_a_bug_that_is_fixed_holds_the_gate_until_it_is_blessed(bug):
    fix(bug)
    result = gate(bug)["bug.fuse"]
    assert result["status"] == "fixed" and not result["ok"] and "bless it to keep it passing" in result["message"]
    assert re.search(r"^\+ .*lt %", result["difference"], re.M)
    blessed = gate(bug, "--bless", "--reason", REASON)["bug.fuse"]
    assert blessed["status"] == "blessed" and blessed["ok"]
    result = gate(bug)["bug.fuse"]
    assert result["status"] == "passed" and not result["records_bug"]
    break_again(bug)
    result, before = gate(bug)["bug.fuse"], bug.read_bytes()
    assert result["status"] == "different" and "gives E0410" in result["message"]
    refused = gate(bug, "--bless", "--reason", REASON)["bug.fuse"]
    assert refused["status"] == "different" and "a failure is not blessed" in refused["message"] and bug.read_bytes() == before


# -- blessing


def test_what_is_blessed_is_kept_with_its_reason(folder):
    old = stage_digests(folder / "b.fuse")["kernel"]
    for name in "b.fuse", "below/a.fuse":
        change_digest(folder / name, "kernel")
    untouched = (folder / "c.fuse").read_bytes()
    for results in gate(folder, "--bless", "--reason", REASON), gate(folder, "--bless", "--reason", "once more"):
        assert all(r["ok"] for r in results.values())
    for at, name in (folder, "b.fuse"), (folder / "below", "a.fuse"):
        log = (at / "BLESSED").read_text()
        assert log.count("reason: ") == 1 and f"\n{name}\n  reason: indices are folded differently\n    and nobody minds\n" in log
        assert f"  kernel       {'0' * 32} -> {old}\n" in log
        assert "// option blessed: indices are folded differently" in fusebox("show", at / name).stdout
    assert (folder / "c.fuse").read_bytes() == untouched
    change_digest(folder / "b.fuse", "host")
    gate(folder, "--bless", "--reason", "again")
    assert re.findall("reason: (.*)", (folder / "BLESSED").read_text()) == ["indices are folded differently", "again"]
    assert sorted(p.name for p in folder.iterdir()) == ["BLESSED", "b.fuse", "below", "c.fuse", "notes.txt"]


def test_blessing_keeps_the_inputs(folder, tmp_path):
    values, exact = tmp_path / "y.npy", folder / "exact.fuse"
    fusebox("run", folder / "b.fuse", "--on", "host", "--output", f"y={values}")
    assert fusebox("run", folder / "b.fuse", "--on", "host", "--input", f"x={values}", "--record", exact).returncode == 0
    outputs = stage_digests(exact)["outputs"]
    change_digest(exact, "kernel")
    assert gate(exact, "--bless", "--reason", "why")["exact.fuse"]["status"] == "blessed"
    assert gate(exact)["exact.fuse"]["ok"] and stage_digests(exact)["outputs"] == outputs


def test_a_folder_with_KEEP_is_not_blessed(folder):
    change_digest(folder / "b.fuse", "kernel")
    (folder / "KEEP").touch()
    before = (folder / "b.fuse").read_bytes()
    result = gate(folder, "--bless", "--reason", "why")["b.fuse"]
    assert result["status"] == "different" and "KEEP" in result["message"] and (folder / "b.fuse").read_bytes() == before
    assert not (folder / "BLESSED").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_log_that_cannot_be_written_leaves_the_bundles(folder):
    change_digest(folder / "b.fuse", "kernel")
    before = (folder / "b.fuse").read_bytes()
    folder.chmod(0o555)
    try:
        assert fusebox("gate", folder, "--bless", "--reason", "why").returncode == 2
    finally:
        folder.chmod(0o755)
    assert (folder / "b.fuse").read_bytes() == before


@pytest.mark.parametrize("more", [["--bless"], ["--bless", "--reason", " "], ["--reason", "why"], ["--bless", "--reason", "why", "--on", "host"],
                                  ["--bless", "--reason", "why", "--only", "kernel"], ["--jobs", "0"], ["--timeout", "0"], ["--only", "moon"]])
def test_usage(folder, more):
    assert error_of(folder, *more) == "E0440"


def test_ci_does_not_bless(folder):
    assert error_of(folder, "--bless", "--reason", "why", ci="true") == "E0440"


# -- bundles that cannot be replayed


def test_an_empty_or_missing_folder_is_bad_usage(tmp_path):
    assert error_of(tmp_path) == "E0440"
    assert error_of(tmp_path / "nowhere") == "E0430"


def test_a_damaged_bundle_fails_alone(folder):
    (folder / "b.fuse").write_bytes((folder / "c.fuse").read_bytes()[:300])
    (folder / "below" / "text.fuse").write_text(SMALL)
    results = gate(folder)
    assert [r["status"] for r in results.values()] == ["error", "passed", "error", "passed"]
    assert re.match("E011[0-4]", results["b.fuse"]["message"]) and results["text.fuse"]["message"].startswith("E0110")


def test_a_lost_digest_and_a_changed_stage_are_damage(folder):
    replace(folder / "b.fuse", b"crossings", b"crossingz")
    replace(folder / "c.fuse", b"fusebox_kernel", b"fuseboy_kernel")
    results = gate(folder)
    assert [r["status"] for r in results.values()] == ["error", "passed", "error"]
    for name in "b.fuse", "c.fuse":
        assert results[name]["message"].startswith("E0111 digests"), results[name]


SAME = "what the bundle holds of this stage is the same, but has not the digest that the bundle says"


@pytest.mark.parametrize("stage, reason", [(s, SAME) for s in ("fusion", "kernel", "source", "crossings", "outputs")] + [("plan", "and no text of it")])
def test_a_changed_digest_is_told_from_a_changed_stage(folder, stage, reason):
    change_digest(folder / "b.fuse", stage)
    result = gate(folder / "b.fuse")["b.fuse"]
    assert result["status"] == "different" and reason in result["difference"]


def test_one_that_takes_too_long_fails_alone(folder):
    make_slow(folder / "b.fuse")
    results = gate(folder, "--jobs", "1", "--timeout", "1")
    assert [r["status"] for r in results.values()] == ["error", "passed", "passed"]
    assert results["b.fuse"]["message"] == "the replay took longer than 1 s" and results["b.fuse"]["seconds"] >= 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_that_dies_fails_alone_and_its_signal_is_named(folder, jobs):
    make_slow(folder / "below" / "a.fuse")
    results = gate(folder, "--jobs", jobs, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 30)))
    assert [r["status"] for r in results.values()] == ["passed", "error", "passed"]
    assert results["a.fuse"]["message"] == "the replay was killed by SIGXCPU"


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="a GPU is there")
def test_what_this_machine_lacks_is_skipped_and_counted(folder):
    data = (folder / "b.fuse").read_bytes()
    word = b"\x04\x00\x00\x00host\x00"
    for at in (m.start() for m in re.finditer(re.escape(word), data)):
        (folder / "b.fuse").write_bytes(data[:at + 4] + b"cuda" + data[at + 8:])
        if "// run on cuda" in fusebox("show", folder / "b.fuse").stdout:
            break
    results = gate(folder)
    assert [r["status"] for r in results.values()] == ["skipped", "passed", "passed"]
    assert gate(folder, "--no-skips")["b.fuse"]["status"] == "error"
    assert gate(folder / "c.fuse", "--on", "cuda")["c.fuse"]["status"] == "error"


def test_jobs_change_nothing(folder, bug):
    fix(bug)
    change_digest(folder / "c.fuse", "kernel")
    seen = [gate(folder, "--jobs", jobs) for jobs in (1, 2, 7)]
    for results in seen:
        for r in results.values():
            del r["seconds"]
    assert seen[0] == seen[1] == seen[2] and len({r["status"] for r in seen[0].values()}) == 3


# -- reports


def test_junit(folder, tmp_path):
    odd = folder / "od<d>&\"'\x01.fuse"
    shutil.copy(folder / "b.fuse", odd)
    (folder / "d.fuse").write_bytes(b"damaged")
    change_digest(odd, "kernel")
    report = tmp_path / "gate.xml"
    assert fusebox("gate", folder, "--junit", report).returncode == 1
    root = ElementTree.parse(report).getroot()
    assert root.tag == "testsuites" and root.get("tests") == "5" and root.get("failures") == "1" and root.get("errors") == "1"
    (suite,) = root
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert list(cases) == ["b.fuse", "a.fuse", "c.fuse", "d.fuse", "od<d>&\"'\ufffd.fuse"]
    assert cases["a.fuse"].get("classname") == str(folder / "below") and len(cases["a.fuse"]) == 0 and float(cases["a.fuse"].get("time")) >= 0
    (failure,) = cases["od<d>&\"'\ufffd.fuse"]
    assert failure.tag == "failure" and failure.get("message") == "differs at kernel" and failure.text.startswith("differs at kernel\n")
    (error,) = cases["d.fuse"]
    assert error.tag == "error" and "E0110" in error.get("message")


def test_a_report_that_cannot_be_written_is_an_error(folder, tmp_path):
    assert fusebox("gate", folder, "--junit", tmp_path / "no" / "such.xml").returncode == 2


def test_help_has_examples():
    assert "  fusebox gate corpus/regress\n" in fusebox("gate", "--help").stdout


# -- the corpus


def test_golden_holds_each_format_version():
    versions = {int(v) for v in re.findall(r'FUSEBOX_FEATURE\(\w+, "[^"]*", \d+, (\d+)\)', (ROOT / "serde" / "feature_table.inc").read_text())}
    assert versions and all(list(GOLDEN.glob(f"v{v}_*.fuse")) for v in range(1, max(versions) + 1))
    assert (GOLDEN / "KEEP").exists()


@pytest.mark.parametrize("path", sorted([*GOLDEN.glob("*.fuse"), *REGRESS.glob("*.fuse")]), ids=lambda p: p.name)
def test_bundles_of_the_corpus_are_small_and_need_no_device(path):
    assert path.stat().st_size < 100_000
    assert "// run on host" in fusebox("show", path).stdout
