"""The folder of `fusebox fuzz --out`: who may write into it, and states that are damaged."""

import json
import signal
import subprocess
import time

import pytest

from support import FUSEBOX, fusebox, objects

LIGHT = ["--oracle", "host-checks,text", "--jobs", "1"]
HUGE = 2**64 - 1


def error_of(run):
    assert run.returncode == 2, run.stdout + run.stderr
    error = objects(run)[-1]["error"]
    return error["code"], error["place"]


def fuzz(folder, *more):
    return fusebox("fuzz", "--runs", 300, *LIGHT, "--out", folder, *more, "--json")


def started(folder, seed):
    command = [str(FUSEBOX), "fuzz", "--time", "10m", "--seed", str(seed), *LIGHT, "--out", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# -- folders that cannot be made


def test_a_folder_that_cannot_be_made(tmp_path):
    file, half = tmp_path / "file", tmp_path / "half"
    file.write_text("")
    half.mkdir()
    (half / "findings").write_text("")
    assert error_of(fuzz(file)) == ("E0431", str(file))
    assert error_of(fuzz(file / "below")) == ("E0431", str(file / "below"))
    assert error_of(fuzz(half)) == ("E0431", str(half / "findings"))
    assert error_of(fuzz("/proc/x")) == ("E0431", "/proc/x")


def test_a_folder_of_the_score_that_cannot_be_made(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    help_text = fusebox("fuzz", "--help").stdout
    if "Not in this build" in help_text:
        pytest.skip("built without seeded defects")
    run = fusebox("fuzz", "--score", "--seeds", 1, "--time", "1s", "--defect", "predicate-dropped", "--out", file, "--json")
    assert error_of(run) == ("E0431", str(file))


# -- two campaigns


@pytest.mark.parametrize("seed", [1, 2])
def test_a_folder_has_one_campaign_at_a_time(tmp_path, seed):
    first, second = started(tmp_path, 1), started(tmp_path, seed)
    running = [first, second]
    try:
        deadline = time.monotonic() + 60
        while all(p.poll() is None for p in running) and time.monotonic() < deadline:
            time.sleep(0.1)
        (refused,) = [p for p in running if p.poll() is not None]
        (other,) = [p for p in running if p is not refused]
        _, message = refused.communicate(timeout=60)
        assert refused.returncode == 2 and f"E0440 {tmp_path}: " in message
        other.send_signal(signal.SIGINT)
        out, err = other.communicate(timeout=60)
        assert other.returncode in (0, 1), out + err
    finally:
        for p in running:
            p.kill()


def test_the_state_is_there_from_the_start_and_a_kill_frees_the_folder(tmp_path):
    process = started(tmp_path, 1)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "campaign.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert json.loads((tmp_path / "campaign.json").read_text())["statistics"]["cases"] == 0
    finally:
        process.kill()
        process.communicate()
    assert error_of(fuzz(tmp_path, "--seed", 2)) == ("E0440", str(tmp_path / "campaign.json"))
    assert fuzz(tmp_path).returncode in (0, 1)


# -- damaged states


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    assert fuzz(folder).returncode in (0, 1)
    return (folder / "campaign.json").read_text()


@pytest.mark.parametrize("cut", [0, 500, -2])
def test_a_text_that_is_no_state(state, tmp_path, cut):
    path = tmp_path / "campaign.json"
    path.write_text(state[:cut])
    code, place = error_of(fuzz(tmp_path))
    assert code == "E0101" and place.startswith(f"{path}: ")


FINDING = {"stage": "text", "check": "differs", "place": "", "message": "m", "number": 3, "count": 1, "seconds": 0.5, "lineage": "", "file": ""}

DAMAGE = {
    "no configuration": lambda s: s.pop("configuration"),
    "no such block": lambda s: s.update(next_block=HUGE),
    "a block begun beyond the last": lambda s: s["partial"][0].update(block=s["next_block"]),
    "all blocks still to come": lambda s: s.update(next_block=0),
    "a block twice": lambda s: s["partial"].append(s["partial"][0]),
    "too much of a block": lambda s: s["partial"][0].update(done=257),
    "a deadly case elsewhere": lambda s: s["partial"][0].update(deadly=[[3, 0]]),
    "an unknown part": lambda s: s["partial"][0].update(deadly=[[256, 999]]),
    "too many cases": lambda s: s["statistics"].update(cases=513),
    "the most cases": lambda s: s["statistics"].update(cases=HUGE),
    "the most ops": lambda s: s["statistics"].update(ops=HUGE),
    "no counts": lambda s: s["statistics"].update(judged=[]),
    "no refusals": lambda s: s["statistics"].update(refusals=None),
    "time backwards": lambda s: s["statistics"].update(seconds=-5),
    "time without end": lambda s: s["statistics"].update(seconds=1e300),
    "a finding twice": lambda s: s["statistics"].update(findings=[FINDING, FINDING]),
    "a finding to come": lambda s: s["statistics"].update(findings=[FINDING | {"number": HUGE}]),
    "a sample to come": lambda s: s["series"].append([1, HUGE, 0, 0]),
    "too many samples": lambda s: s.update(series=[[0, 0, 0, 0]] * 1000),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_state_that_no_campaign_has(state, tmp_path, damage):
    path = tmp_path / "campaign.json"
    changed = json.loads(state)
    assert changed["next_block"] == 2 and len(changed["partial"]) == 1
    DAMAGE[damage](changed)
    path.write_text(json.dumps(changed))
    run = fuzz(tmp_path)
    code, place = error_of(run)
    assert code == "E0112" and place.startswith(f"{path}: ")
    assert "another folder" in objects(run)[-1]["error"]["message"]
    assert path.read_text() == json.dumps(changed)


def test_a_state_of_another_version(state, tmp_path):
    path = tmp_path / "campaign.json"
    path.write_text(json.dumps(json.loads(state) | {"format": 2}))
    assert error_of(fuzz(tmp_path)) == ("E0113", str(path))


def test_a_state_with_a_finding_goes_on(state, tmp_path):
    changed = json.loads(state)
    changed["statistics"]["findings"] = [FINDING]
    (tmp_path / "campaign.json").write_text(json.dumps(changed))
    assert any(o.get("signature") == "text differs" for o in objects(fuzz(tmp_path)))
