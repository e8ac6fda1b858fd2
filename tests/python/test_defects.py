"""Seeded defects: each has a small case that fails only with it, and the bundle of a broken run replays
broken."""

import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FUSEBOX_BUILD", ROOT / "build"))
FUSEBOX = BUILD / "bin" / "fusebox"
PROGRAMS = sorted((ROOT / "corpus" / "programs").glob("*.fir"))
CASES = ROOT / "corpus" / "defects"
SWIZZLED = ROOT / "corpus" / "programs" / "swizzled_copy_1d.fir"
DEFECTS = re.findall(r'FUSEBOX_DEFECT\(\w+, "([a-z-]+)"', (ROOT / "ir" / "table" / "defect_table.inc").read_text())

pytestmark = pytest.mark.skipif(not (BUILD / "lib" / "libfusebox_aten.so").exists(), reason="built without ATen")


def fusebox(*arguments):
    command = [str(FUSEBOX), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def judged(file, *arguments):
    """The exit code, and the signatures of all findings in one file."""
    result = fusebox("fuzz", "--case", file, "--json", *arguments)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return result.returncode, [line["signature"] for line in lines if "signature" in line], lines[-1]


def test_there_are_defects():
    assert len(DEFECTS) >= 80


def test_every_case_is_of_a_defect():
    assert {path.stem for path in CASES.glob("*.fir")} <= set(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_breaks_its_case(defect):
    file = CASES / f"{defect}.fir"
    if not file.exists():
        pytest.skip("no case yet: python tests/bench/reduce_findings.py --corpus corpus/defects " + defect)
    code, signatures, _ = judged(file, "--defect", defect)
    assert code == 1 and signatures, defect


@pytest.mark.parametrize("path", sorted(CASES.glob("*.fir")), ids=lambda p: p.stem)
def test_no_case_fails_without_its_defect(path):
    code, signatures, last = judged(path)
    assert code == 0 and not signatures and last["valid"], signatures


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_none_is_reported_without_the_switch(program):
    assert fusebox("run", program, "--check", "--on", "host").returncode == 0


def test_the_unsound_equivalence_stores_outside_its_element():
    result = fusebox("run", SWIZZLED, "--check", "--on", "host", "--json", "--defect", "almost-exact-equal-extent")
    assert result.returncode == 1
    error = json.loads(result.stdout.splitlines()[0])["error"]
    assert error["code"] == "E0413" and error["place"] == "%T2[64]"


def test_a_bundle_keeps_the_defect(tmp_path):
    bundle = tmp_path / "broken.fuse"
    broken = fusebox("run", SWIZZLED, "--on", "host", "--record", bundle, "--defect", "predicate-dropped")
    assert broken.returncode in (0, 1)
    assert "option defects: predicate-dropped" in fusebox("show", bundle).stdout
    again = fusebox("replay", bundle)
    assert again.returncode == 0, again.stdout + again.stderr
    # Another defect gives another plan, and so another kernel.
    other = fusebox("replay", bundle, "--defect", "extent-truncated", "--json")
    assert other.returncode == 1
    result = json.loads(other.stdout)
    assert result["first_difference"] == "plan" and result["stages"]["kernel"] == "different"


def test_a_sound_bundle_shows_what_a_defect_changes(tmp_path):
    bundle = tmp_path / "sound.fuse"
    assert fusebox("run", SWIZZLED, "--on", "host", "--record", bundle).returncode == 0
    result = fusebox("replay", bundle, "--defect", "predicate-off-by-one")
    assert result.returncode == 1 and "kernel" in result.stdout


def test_an_unknown_name_is_refused():
    result = fusebox("run", SWIZZLED, "--defect", "no-such-defect")
    assert result.returncode == 2 and "E0102" in result.stderr and "no-such-defect" in result.stderr


def test_help_names_the_list():
    for command in ("run", "fuzz"):
        text = " ".join(fusebox(command, "--help").stdout.split())
        assert "`fusebox fuzz --list-defects`" in text
        assert DEFECTS[-1] not in text
    listed = fusebox("fuzz", "--list-defects").stdout
    for defect in DEFECTS:
        assert defect in listed


def test_show_prints_the_broken_kernel():
    sound = fusebox("show", SWIZZLED, "--level", "kernel").stdout
    broken = fusebox("show", SWIZZLED, "--level", "kernel", "--defect", "almost-exact-equal-extent").stdout
    assert sound.count(" lt ") > broken.count(" lt ")


def test_pictures_show_the_broken_rule():
    file = ROOT / "corpus" / "programs" / "softmax.fir"
    for form in ["text", "json", "dot", "svg", "html"]:
        sound = fusebox("show", file, "--graph", "exact", "--format", form).stdout
        assert sound == fusebox("show", file, "--graph", "exact", "--format", form, "--defect", "loop-short").stdout
        assert sound != fusebox("show", file, "--graph", "exact", "--format", form, "--defect", "predicate-dropped").stdout


def test_why_names_the_theorems():
    text = fusebox("show", SWIZZLED, "--level", "kernel", "--why").stdout
    assert "[split-divides]" in text and "[swizzle]" in text and "[merge]" in text
    assert re.search(r"%p\d+ = lt .*// .*%y\.b \[split-input\]", text)
