"""tests/demo/demo.py: which results it calls right, which programs it repeats, and its table."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "demo"))
import demo  # noqa: E402

RUN = {
    "program": "softmax", "executor": "host", "kernels": 2, "ok": True,
    "stages": {"fusion": "aabbccdd", "scheduled": "11223344"},
    "outputs": [{"name": "y", "max_error": 1e-7, "bound": 1e-6}, {"name": "z", "max_error": 3e-4, "bound": 1e-3}],
}
REPLAY = {"bundle": "softmax.fuse", "identical": True, "first_difference": None, "not_comparable": [], "stages": {}}


def test_a_good_run_is_one_line():
    cells, good = demo.row("softmax", {"run": RUN, "replay": REPLAY})
    assert good
    assert cells == ["softmax", "2", "aabb 1122", "3.00e-04 of 1.00e-03", "replay: identical"]


@pytest.mark.parametrize("change", [
    {"run": {**RUN, "ok": False}},
    {"run": {**RUN, "outputs": [{"name": "y"}]}},
    {"replay": {**REPLAY, "identical": False, "first_difference": "kernel"}},
])
def test_what_is_not_right_is_counted(change):
    _, good = demo.row("softmax", {"run": RUN, "replay": REPLAY, **change})
    assert not good


def test_an_error_takes_the_place_of_the_result():
    cells, good = demo.row("softmax", {"error": "E1001: no such op"})
    assert not good and "E1001" in cells[3]


def test_the_worst_output_is_the_one_nearest_its_bound():
    outputs = [{"max_error": 5.0, "bound": 100.0}, {"max_error": 0.0, "bound": 0.0}, {"max_error": 1e-9, "bound": 2e-9}]
    assert demo.worst_output(outputs) == (1e-9, 2e-9)
    assert demo.worst_output([{"max_error": None, "bound": 1.0}, *outputs])[0] == float("inf")
    assert demo.worst_output([{"max_error": 1e-30, "bound": 0.0}, *outputs]) == (1e-30, 0.0)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A checkout with one program and a fake command line."""
    (tmp_path / "corpus/programs").mkdir(parents=True)
    (tmp_path / "corpus/programs/softmax.fir").write_text("fusion @softmax {}\n")
    (tmp_path / "build/bin").mkdir(parents=True)
    (tmp_path / "build/bin/fusebox").write_bytes(b"one")
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    monkeypatch.setattr(demo, "RESULTS", tmp_path / ".demo")
    monkeypatch.setattr(demo, "gpu_name", lambda: "")
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    calls = []
    answers = {"run": RUN, "replay": REPLAY}

    def fusebox(command, *_):
        calls.append(command)
        return [json.loads(json.dumps(answers[command]))]

    monkeypatch.setattr(demo, "fusebox", fusebox)
    return tmp_path, calls, answers


def test_a_second_run_skips_what_is_done(tree, capsys):
    root, calls, _ = tree
    assert demo.main() == 0 and calls == ["run", "replay"]
    assert demo.main() == 0 and calls == ["run", "replay"]
    assert capsys.readouterr().out.count("1 of 1 programs right, on host") == 2
    (root / "build/bin/fusebox").write_bytes(b"two")
    assert demo.main() == 0 and len(calls) == 4
    (root / "corpus/programs/softmax.fir").write_text("fusion @other {}\n")
    assert demo.main() == 0 and len(calls) == 6


def test_a_failure_is_tried_again(tree):
    _, calls, answers = tree
    answers["replay"] = {**REPLAY, "identical": False, "first_difference": "source"}
    assert demo.main() == 1
    answers["replay"] = REPLAY
    assert demo.main() == 0 and len(calls) == 4
