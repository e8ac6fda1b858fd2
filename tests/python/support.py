"""Shared by tests of the command line: paths, and a way to run `fusebox`."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FUSEBOX_BUILD", ROOT / "build"))
FUSEBOX = BUILD / "bin" / "fusebox"
PROGRAMS = ROOT / "corpus" / "programs"
HAS_ATEN = (BUILD / "lib" / "libfusebox_aten.so").exists()


def fusebox(*arguments, timeout=300, **options):
    """Returns the finished process with its output as text, whatever its exit code."""
    command = [str(FUSEBOX), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **options)
