"""tests/bench/choices.py compares what was tuned on a GPU with what the schedulers choose now, on any machine."""

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "bench" / "choices.py"
sys.path.insert(0, str(SCRIPT.parent))


def compared(path, *records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    run = subprocess.run([sys.executable, SCRIPT, "--against", path], capture_output=True, text=True, check=True)
    return run.stdout


def record(chosen, fastest, before=8.0, after=8.0):
    return {"family": "softmax", "m": 64, "n": 4096, "dtype": "float32", "before": before, "after": after, "chosen": chosen, "fastest": fastest}


def test_says_which_choices_have_changed(tmp_path):
    import choices
    import families

    now = choices.choice_now(families.torch_families(), record("", ""))
    assert now.startswith("persistent ")
    told = compared(tmp_path / "a.jsonl", record(now, now), record("old", now, 8.0, 4.0), record("old", "old"), record("old", "other", 9.0, 8.0))
    assert "| softmax | 4 | 1.225 | 2 | 2.00 |" in told
    assert "GAIN softmax 64 x 4096 float32, 8.0 µs, fastest 4.0\n  was old\n  is  " + now in told
    assert "3 of 4 choices are others: 1 are the fastest now, 2.000 times as fast; 1 were the fastest; 1 neither" in told


def test_reads_what_is_kept_beside_it():
    kept = SCRIPT.parent / "tuned_h100.jsonl.gz"
    run = subprocess.run([sys.executable, SCRIPT, "--families", "softmax,adam", "--against", kept], capture_output=True, text=True, check=True)
    assert "| softmax | 118 |" in run.stdout and "| swiglu |" not in run.stdout
    assert "of 235 choices are others" in run.stdout


def test_needs_a_file():
    run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert run.returncode == 1 and "--against FILE" in run.stderr
