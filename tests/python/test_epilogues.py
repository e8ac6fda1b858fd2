"""A product of matrices and what follows it is one call of ATen: the automatic plan says so, its steps and a bundle repeat it, and the
unfused plan has each op apart."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FUSEBOX_BUILD", ROOT / "build"))
FUSEBOX = BUILD / "bin" / "fusebox"
MLP = ROOT / "tests" / "support" / "programs" / "mlp.fir"
INPUTS = ["--input", "x=bf16[40, 24] normal seed 1", "--input", "w=bf16[56, 24] normal seed 2", "--input", "b=bf16[56] normal seed 3"]

pytestmark = pytest.mark.skipif(not (BUILD / "lib" / "libfusebox_aten.so").exists(), reason="built without ATen")


def cli(*arguments):
    result = subprocess.run([str(FUSEBOX), *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def digests(text):
    return {words[0]: words[1] for words in map(str.split, text.splitlines()) if len(words) == 2 and len(words[1]) == 32}


def test_the_plan_names_the_epilogue():
    shown = cli("show", MLP, "--plan", "automatic", "--level", "heuristics")
    assert 'expr_eval epilogue "bias gelu"' in shown
    report = json.loads(cli("explain", MLP, "--plan", "--format", "json"))
    assert [(s["executor"], s["heuristics"], len(s["ops"])) for s in report["segments"]] == [("aten", 'expr_eval epilogue "bias gelu"', 12)]


def test_an_exact_tanh_is_a_reason():
    shown = cli("show", MLP, "--plan", "automatic", "--level", "heuristics", "--precision", "exact")
    assert "epilogue: %t is exact, and libraries approximate tanh; `precision of [%t] fast` allows it" in shown
    assert '"bias gelu"' not in shown


def test_steps_and_bundles_repeat_it(tmp_path):
    steps, bundle = tmp_path / "plan.txt", tmp_path / "run.fuse"
    planned = cli("run", MLP, "--on", "host", "--check", *INPUTS, "--save-steps", steps, "--record", bundle)
    assert "assign of [%y, %f" in steps.read_text()
    repeated = cli("run", MLP, "--on", "host", "--check", *INPUTS, "--steps", steps)
    unfused = cli("run", MLP, "--on", "host", "--check", *INPUTS, "--plan", "unfused")
    for output in (planned, repeated, unfused):
        assert "agrees with ATen" in output
    assert digests(planned)["outputs"] == digests(repeated)["outputs"]
    assert digests(planned)["segments"] == digests(repeated)["segments"]
    # One call leaves out the rounding of the product, so some elements are others.
    assert digests(planned)["segments"] != digests(unfused)["segments"]
    assert digests(planned)["outputs"] != digests(unfused)["outputs"]
    assert cli("replay", bundle).rstrip().endswith("replay: identical")


def test_the_unfused_plan_has_none():
    shown = cli("show", MLP, "--plan", "unfused", "--level", "host")
    assert shown.count("run_aten") == 1 and shown.count("launch") >= 11
