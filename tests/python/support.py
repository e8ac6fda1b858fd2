"""Shared by tests of the command line: paths, and a way to run `fusebox`."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FUSEBOX_BUILD", ROOT / "build"))
FUSEBOX = BUILD / "bin" / "fusebox"
PROGRAMS = ROOT / "corpus" / "programs"
SHARED = ROOT / "tests" / "support" / "programs"
HAS_ATEN = (BUILD / "lib" / "libfusebox_aten.so").exists()


def twice(extent=5, devices=("host",)):
    """A small program with default inputs, as text."""
    inputs = "".join(f"inputs @twice {device} {{\n  %x = f32[{extent}] normal seed 1\n}}\n" for device in devices)
    return f"""fusion @twice {{
  %n = size
  %x = input f32[%n] contiguous
  %y = add %x, %x
  output %y
}}
{inputs}"""


def written(folder, text, name="twice.fir"):
    """Writes the text into a file of the folder and returns its path."""
    path = folder / name
    path.write_text(text)
    return path


def fusebox(*arguments, timeout=300, **options):
    """Returns the finished process with its output as text, whatever its exit code."""
    command = [str(FUSEBOX), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **options)


def objects(run):
    """The lines that a command printed with --json."""
    return [json.loads(line) for line in run.stdout.splitlines()]


def only(run):
    (item,) = objects(run)
    return item
