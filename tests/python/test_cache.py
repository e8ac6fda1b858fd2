"""The cache of compiled fusions: a second process takes its program from disk, and `fusebox cache` shows, checks and ships it."""

import json
import os
import subprocess
import sys

import pytest

from support import BUILD, FUSEBOX, PROGRAMS, fusebox

SOFTMAX = PROGRAMS / "softmax.fir"
SILU = PROGRAMS / "silu_mul_bias.fir"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


ENVIRONMENT = {**os.environ, "FUSEBOX_CACHE_BYTES": "", "FUSEBOX_CACHE_DIR": ""}


def in_cache(folder, *arguments, **variables):
    return fusebox(*arguments, env={**ENVIRONMENT, "FUSEBOX_CACHE_DIR": str(folder), "FUSEBOX_LOG": "cache", **variables})


def run(folder, *arguments, **variables):
    return in_cache(folder, "run", SOFTMAX, "--on", "host", "--json", *arguments, **variables)


def only(result):
    (line,) = result.stdout.splitlines()
    return json.loads(line)


def records(folder):
    return sorted(path for path in folder.iterdir() if path.suffix in (".fusion", ".kernel"))


def test_a_second_process_plans_nothing_and_gives_the_same_digests(folder):
    cold = run(folder)
    assert cold.returncode == 0 and "cached" not in only(cold)
    assert "cache: miss @softmax for host: not there" in cold.stderr and "cache: keep @softmax" in cold.stderr
    warm = run(folder, "--cache-only")
    assert warm.returncode == 0 and "cache: hit @softmax" in warm.stderr and only(warm)["cached"] is True
    without = run(folder, "--no-cache")
    assert without.returncode == 0 and "cache:" not in without.stderr
    for other in (warm, without):
        assert only(other)["stages"] == only(cold)["stages"] and only(other)["outputs"] == only(cold)["outputs"]


def test_a_run_that_may_only_use_the_cache_fails_without_a_record(folder):
    result = run(folder, "--cache-only")
    assert result.returncode == 2 and only(result)["error"]["code"] == "E0434"
    assert run(folder, "--cache-only", "--no-cache").returncode == 2
    assert run(folder, "--cache-only", "--defect", "split-swapped").returncode == 2
    assert run(folder, "--cache-only", FUSEBOX_CACHE_BYTES="0").returncode == 2


def test_the_host_executor_uses_a_cache_only_where_one_is_named(tmp_path):
    env = {**ENVIRONMENT, "XDG_CACHE_HOME": str(tmp_path), "FUSEBOX_LOG": "cache"}
    result = fusebox("run", SOFTMAX, "--on", "host", env=env)
    assert result.returncode == 0 and "cache:" not in result.stderr


def test_other_steps_are_another_program(folder):
    assert run(folder).returncode == 0
    assert "miss" in run(folder, "--unfused").stderr
    assert len(records(folder)) == 2
    assert "hit" in run(folder, "--unfused").stderr and "hit" in run(folder).stderr


def test_replay_and_gate_read_no_cache(folder, tmp_path):
    bundle = tmp_path / "softmax.fuse"
    assert run(folder, "--record", bundle).returncode == 0
    for command in ("replay", "gate"):
        result = in_cache(folder, command, bundle)
        assert result.returncode == 0 and "cache:" not in result.stderr


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_record_is_a_miss_and_is_written_anew(folder, damage):
    cold = run(folder)
    (path,) = records(folder)
    good = path.read_bytes()
    bad = bytearray(good)
    bad[len(bad) // 2] ^= 4
    path.write_bytes({"flip": bytes(bad), "cut": good[:-9], "empty": b"", "foreign": b"something else" * 20}[damage])
    checked = in_cache(folder, "cache", "verify", "--json")
    assert checked.returncode == 1 and json.loads(checked.stdout.splitlines()[-1]) == {"good": 0, "unusable": 1, "ok": False}
    again = run(folder)
    assert again.returncode == 0 and "miss" in again.stderr and only(again)["stages"] == only(cold)["stages"]
    assert path.read_bytes() == good, "the same record"


def test_a_folder_that_others_may_write_is_refused_by_commands_and_left_alone_by_runs(folder):
    folder.mkdir()
    folder.chmod(0o777)
    result = run(folder)
    assert result.returncode == 0 and result.stderr.count("E0433") == 1 and not records(folder)
    listed = in_cache(folder, "cache", "ls", "--json")
    assert listed.returncode == 2 and json.loads(listed.stdout)["error"]["code"] == "E0433"
    assert only(run(folder, "--cache-only"))["error"]["code"] == "E0433"


def test_a_folder_that_cannot_be_made_fails_no_run():
    for place in ("/proc/no/cache", "/dev/null/cache"):
        result = fusebox("run", SOFTMAX, "--on", "host", env={**ENVIRONMENT, "FUSEBOX_CACHE_DIR": place})
        assert result.returncode == 0 and result.stderr == "", result.stderr


def test_the_commands(folder):
    run(folder)
    in_cache(folder, "run", SILU, "--on", "host")
    listed = [json.loads(line) for line in in_cache(folder, "cache", "ls", "--json").stdout.splitlines()]
    assert [r["program"] for r in listed] == ["@silu_mul_bias", "@softmax"], "the one used last is first"
    assert all(r["kind"] == "fusion" and r["target"] == "host" for r in listed)
    text = in_cache(folder, "cache", "ls").stdout
    assert "@softmax host" in text and "2 records" in text
    shown = json.loads(in_cache(folder, "cache", "show", listed[1]["name"][:8], "--json").stdout)
    stages = only(run(folder))["stages"]
    assert shown["program"] == "@softmax" and shown["host"] == stages["host"] and shown["concretized"] == stages["concretized"]
    assert "steps" in shown["key"] and "compiled fusion" in in_cache(folder, "cache", "show", listed[1]["name"][:8]).stdout
    assert in_cache(folder, "cache", "show", "zz").returncode == 2
    assert in_cache(folder, "cache", "verify").returncode == 0
    assert json.loads(in_cache(folder, "cache", "gc", "--json").stdout)["kept"] == 2
    collected = json.loads(in_cache(folder, "cache", "gc", "--bytes", listed[1]["bytes"], "--json").stdout)
    assert collected["removed"] == 1 and [p.name for p in records(folder)] == [listed[1]["name"]], "softmax was used last"
    assert "removed 1 records" in in_cache(folder, "cache", "gc", "--bytes", "0").stdout
    assert not records(folder)


def test_verify_removes_what_cannot_be_used(folder):
    run(folder)
    (folder / ("0" * 32 + ".fusion")).write_bytes(b"junk")
    assert in_cache(folder, "cache", "verify", "--remove").returncode == 1
    assert len(records(folder)) == 1 and in_cache(folder, "cache", "verify").returncode == 0


def test_what_is_exported_suffices_elsewhere(folder, tmp_path):
    cold = run(folder)
    in_cache(folder, "run", SILU, "--on", "host")
    app = tmp_path / "app.fuse"
    exported = in_cache(folder, "cache", "export", app, "--program", SOFTMAX, "--json")
    assert exported.returncode == 0 and json.loads(exported.stdout)["records"] == 1
    other = tmp_path / "other"
    for flags in ((), ("--trust-binaries",)):
        imported = in_cache(other, "cache", "import", app, *flags, "--json")
        assert imported.returncode == 0 and json.loads(imported.stdout)["ok"], imported.stdout
        warm = run(other, "--cache-only")
        assert warm.returncode == 0 and only(warm)["stages"] == only(cold)["stages"]
        assert only(warm)["outputs"] == only(cold)["outputs"]
        in_cache(other, "cache", "gc", "--bytes", "0")
    assert fusebox("show", app).returncode == 0


def test_an_import_reads_a_pipe(folder, tmp_path):
    run(folder)
    app, other = tmp_path / "app.fuse", tmp_path / "other"
    assert in_cache(folder, "cache", "export", app).returncode == 0
    environment = {**ENVIRONMENT, "FUSEBOX_CACHE_DIR": str(other)}
    piped = subprocess.run([FUSEBOX, "cache", "import", "/dev/stdin"], input=app.read_bytes(), env=environment, capture_output=True)
    assert piped.returncode == 0, piped.stderr
    assert run(other, "--cache-only").returncode == 0


def test_export_and_import_say_what_is_missing(folder, tmp_path):
    app = tmp_path / "app.fuse"
    assert json.loads(in_cache(folder, "cache", "export", app, "--json").stdout)["error"]["code"] == "E0434"
    in_cache(folder, "run", SILU, "--on", "host", "--record", app)
    assert json.loads(in_cache(folder, "cache", "export", app, "--program", SOFTMAX, "--json").stdout)["error"]["code"] == "E0434"
    assert json.loads(in_cache(folder, "cache", "import", app, "--json").stdout)["error"]["code"] == "E0401"


def test_wrong_files_and_folders_are_named(folder, tmp_path):
    run(folder)
    (record,) = records(folder)
    junk = tmp_path / "junk.fuse"
    junk.write_bytes(b"FUSE and nothing else")
    for file, code in ((record, "E0401"), (SOFTMAX, "E0110"), (junk, "E0110"), (tmp_path / "none.fuse", "E0430"), (folder, "E0430")):
        refused = in_cache(folder, "cache", "import", file, "--json")
        assert refused.returncode == 2 and json.loads(refused.stdout)["error"]["code"] == code, refused.stdout
        assert file != SOFTMAX or "cache export" in refused.stdout
    missing = tmp_path / "missing"
    for command in (("ls",), ("verify",), ("show", "a"), ("gc",), ("export", tmp_path / "x.fuse")):
        refused = in_cache(folder, "cache", *command, "--folder", missing, "--json")
        assert refused.returncode == 2 and json.loads(refused.stdout)["error"]["code"] == "E0430", refused.stdout
    assert not missing.exists(), "a look makes no folder"
    negative = in_cache(folder, "cache", "gc", "--bytes", "-1")
    assert negative.returncode == 2 and "give a decimal whole number from 0" in negative.stderr and len(records(folder)) == 1


def test_a_record_has_its_signature_and_launch_record(folder):
    run(folder)
    (record,) = records(folder)
    shown = json.loads(in_cache(folder, "cache", "show", record.name, "--json").stdout)
    assert len(shown["signature"]) == len(shown["launch"]) == 32
    text = in_cache(folder, "cache", "show", record.name).stdout
    assert shown["signature"] in text and shown["launch"] in text and "%x bf16 [any" in text


def test_a_record_of_an_older_format_is_a_miss(folder):
    cold = run(folder)
    (path,) = records(folder)
    good = path.read_bytes()
    path.write_bytes(good[:8] + (1).to_bytes(4, "little") + good[12:])
    again = run(folder)
    assert again.returncode == 0 and "cache: miss" in again.stderr and only(again)["stages"] == only(cold)["stages"]
    assert path.read_bytes() == good, "written anew"


def test_size_bound(folder):
    run(folder)
    size = records(folder)[0].stat().st_size
    in_cache(folder, "run", SILU, "--on", "host", FUSEBOX_CACHE_BYTES=str(size // 2))
    assert sum(path.stat().st_size for path in records(folder)) <= size // 2
    result = run(folder, FUSEBOX_CACHE_BYTES="many")
    assert result.returncode == 0 and "E0440" in result.stderr


PYTHON = """
import torch
from fusebox import FusionDefinition
fd = FusionDefinition("f", unfused=True)
x = fd.define_tensor([-1, -1])
fd.add_output(fd.ops.sum(fd.ops.exp(x), [1]))
a = fd.execute([torch.ones(5, 7)])[0]
b = fd.execute([torch.ones(3, 2)])[0]
c = fd.execute([torch.ones(5, 7)])[0]
assert torch.equal(a, c)
info = fd.cache_info()
print(a.tolist(), info.disk_hits, info.disk_misses)
"""


def python(**variables):
    pytest.importorskip("torch")
    env = {**ENVIRONMENT, "PYTHONPATH": str(BUILD / "python"), **variables}
    done = subprocess.run([sys.executable, "-c", PYTHON], env=env, capture_output=True, text=True, timeout=300, check=True)
    *values, hits, misses = done.stdout.replace(",", "").split()
    return values, int(hits), int(misses), done.stderr


def test_python_takes_plans_from_disk(folder):
    values, hits, misses, _ = python(FUSEBOX_CACHE_DIR=str(folder))
    assert (hits, misses) == (0, 1), "one plan serves both sizes"
    again, hits, misses, log = python(FUSEBOX_CACHE_DIR=str(folder), FUSEBOX_LOG="cache")
    assert (hits, misses) == (1, 0) and again == values and "cache: hit @f" in log


def test_python_without_a_named_folder_keeps_nothing_of_the_host(tmp_path):
    assert python(XDG_CACHE_HOME=str(tmp_path))[1:3] == (0, 0)
    assert not (tmp_path / "fusebox").exists()
