#!/usr/bin/env python3
"""Runs every program of the corpus on this machine's GPU: at full sizes against ATen, and its kernels under compute-sanitizer.

    corpus.py [--no-sanitizer] [--table FILE] [PROGRAM...]

Prints a Markdown table with the GPU's name (and writes it to FILE): the one in tests/gpu/README.md is made so. The sanitizer
runs replay a bundle recorded on the host executor, whose inputs are small ones: memcheck and racecheck are slow. Exits 1
if anything is not as it should be, and 0 with a line that says so where there is no GPU.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/demo"))
import demo  # noqa: E402

TOOLS = ("memcheck", "racecheck")


def sanitizer_path():
    found = shutil.which("compute-sanitizer")
    for root in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        found = found or shutil.which("compute-sanitizer", path=f"{root}/bin:{root}/compute-sanitizer")
    return found


def sanitize(sanitizer, tool, bundle):
    """One cell: `clean`, or the tool's report."""
    program = str(ROOT / "build/bin/fusebox")
    command = [sanitizer, "--tool", tool, "--error-exitcode", "99", program, "--json", "replay", bundle, "--on", "cuda"]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT)
    reports = [line.strip("= \n") for line in run.stdout.splitlines() if "SUMMARY" in line]
    ran = any(line.startswith("{") and '"stages"' in line for line in run.stdout.splitlines())
    if run.returncode == 99 or not reports or not ran:
        return f"FAILED: {reports[-1] if reports else run.stdout[-200:] + run.stderr[-200:]}".replace("\n", " ")
    return "clean"


def test_program(program, folder, sanitizer):
    """The cells of one row, and whether everything is right."""
    start = time.monotonic()
    try:
        ran = demo.fusebox("run", program, "--on", "cuda", "--check")[-1]
        seconds = time.monotonic() - start
        error, bound = demo.worst_output(ran["outputs"]) or (float("nan"), 0.0)
        sizes = " ".join("×".join(map(str, output["shape"])) for output in ran["outputs"])
        cells = [program.stem, str(ran["kernels"]), sizes, f"{error:.2e}", f"{bound:.2e}",
                 "yes" if ran["ok"] else "NO", f"{seconds:.1f}"]
        good = bool(ran["ok"])
        if sanitizer:
            bundle = pathlib.Path(folder) / f"{program.stem}.fuse"
            demo.fusebox("run", program, "--on", "host", "--record", bundle)
            found = [sanitize(sanitizer, tool, bundle) for tool in TOOLS]
            cells += found
            good = good and all(cell == "clean" for cell in found)
        return cells, good
    except (RuntimeError, OSError, ValueError, KeyError) as failure:
        return [program.stem, f"FAILED: {failure}"], False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--no-sanitizer", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("program", nargs="*")
    options = parser.parse_args()

    device = demo.gpu_name()
    if not device:
        print("corpus on a GPU: skipped, there is no GPU here")
        return 0
    sanitizer = None if options.no_sanitizer else sanitizer_path()
    if not (sanitizer or options.no_sanitizer):
        print("corpus on a GPU: compute-sanitizer is not here, so that part is left out")
    programs = sorted((ROOT / "corpus/programs").glob("*.fir"))
    if options.program:
        programs = [program for program in programs if program.stem in options.program]

    head = ["program", "kernels", "outputs", "largest error", "bound", "right", "seconds"]
    head += list(TOOLS) if sanitizer else []
    lines = [f"GPU: {device}", "", f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            demo.progress(f"{program.stem} on {device}")
            cells, good = test_program(program, folder, sanitizer)
            failed += not good
            lines.append(f"| {' | '.join(cells + [''] * (len(head) - len(cells)))} |")
    demo.progress("")
    text = "\n".join(lines)
    print(text)
    if options.table:
        options.table.write_text(text + "\n")
    print(f"corpus on a GPU: {len(programs) - failed} of {len(programs)} programs right")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
