"""A recorded run gives the same stages and the same bits from every process, with any number of threads.

FUSEBOX_REPLAYS: replays of each bundle (10); FUSEBOX_ON: the executor (host)."""

import itertools
import json
import os
import subprocess

import pytest

import support
from support import PROGRAMS

FILES = sorted(PROGRAMS.glob("*.fir"))
REPLAYS = int(os.environ.get("FUSEBOX_REPLAYS", "10"))
ON = os.environ.get("FUSEBOX_ON", "host")
THREADS = 1, 2, 3, 5, 8, 16
STARTS = "fusion", "scheduled", "kernel"
CALLS = itertools.count()


def fusebox(*arguments):
    """Runs one process. Its environment has a random size, which moves its stack."""
    environment = {**os.environ, "PADDING": "x" * (next(CALLS) * 37 % 4096)}
    ran = support.fusebox(*arguments, "--json", timeout=600, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def addresses_vary():
    """True if processes map their stacks to different places, as with ASLR."""
    command = "import re; print(re.search(r'(\\w+)-.*\\[stack\\]', open('/proc/self/maps').read())[1])"
    return len({subprocess.run(["python3", "-c", command], capture_output=True, check=True).stdout for _ in range(4)}) > 1


def test_addresses_differ_between_processes():
    if not addresses_vary():
        pytest.skip("address space layout randomization is off here")


@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_every_replay_is_identical(program, tmp_path):
    path = tmp_path / "it.fuse"
    recorded = fusebox("run", program, "--on", ON, "--record", path)
    for i in range(REPLAYS):
        replayed = fusebox("replay", path, "--from", STARTS[i // len(THREADS) % len(STARTS)], "--threads", THREADS[i % len(THREADS)])
        assert replayed["identical"] is True and replayed["first_difference"] is None
        assert replayed["not_comparable"] == [] and set(replayed["stages"].values()) == {"identical"}
        assert set(replayed["stages"]) == set(recorded["stages"])


@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_every_run_has_the_same_digests(program):
    first = fusebox("run", program, "--on", ON)
    for threads in THREADS[1:] if REPLAYS >= 10 else THREADS[1:3]:
        again = fusebox("run", program, "--on", ON, "--threads", threads)
        assert again["stages"] == first["stages"] and again["outputs"] == first["outputs"]


@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_two_records_are_the_same_bytes(program, tmp_path):
    bundles = [tmp_path / "a.fuse", tmp_path / "b.fuse"]
    for threads, path in zip((1, 4), bundles):
        fusebox("run", program, "--on", ON, "--threads", threads, "--record", path)
    assert bundles[0].read_bytes() == bundles[1].read_bytes()
