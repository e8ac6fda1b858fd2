#!/usr/bin/env python3
"""Does the main job on every program of corpus/programs: runs it, checks its outputs against ATen, records a bundle, replays
it, and prints one table. Uses the GPU if there is one, otherwise the host executor.

    demo.py [--fresh] [PROGRAM...]      programs by name, such as softmax; all of them if none is named

A program that ran before with the same command line, modules and device does not run again, unless --fresh is given.
Exits 1 if an output is out of its bound, a replay differs, or a command fails.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / ".demo"


def gpu_name():
    """The first GPU's name from the driver, or "" if there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    name = ctypes.create_string_buffer(128)
    device = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0) or driver.cuDeviceGetName(name, 128, device):
        return ""
    return name.value.decode()


def digest(*parts):
    state = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, pathlib.Path) else part.encode()
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:16]


def fusebox(*arguments):
    """Runs `fusebox --json ...` and returns its objects, one for each line of output. Raises if it reports an error."""
    command = [str(ROOT / "build/bin/fusebox"), "--json", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    objects = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    errors = [item["error"] for item in objects if "error" in item]
    if errors:
        raise RuntimeError(f"{errors[0].get('code')}: {errors[0].get('message')} ({errors[0].get('place')})")
    if not objects:
        raise RuntimeError(f"exit {run.returncode}: {' '.join(command[1:])}: {run.stderr.strip()[-300:]}")
    return objects


def demonstrate(program):
    bundle = RESULTS / f"{program.stem}.fuse"
    ran = fusebox("run", program, "--check", "--record", bundle)[-1]
    replayed = fusebox("replay", bundle)[-1]
    return {"run": ran, "replay": replayed}


def number(value):
    """JSON holds non-finite numbers as null or text."""
    return float("inf") if value is None else float(value)


def worst_output(outputs):
    """The (error, bound) of the output with the largest error relative to its bound."""
    def ratio(pair):
        error, bound = pair
        return error / bound if bound else (float("inf") if error else 0.0)
    checked = [(number(o["max_error"]), number(o["bound"])) for o in outputs if "max_error" in o]
    return max(checked, key=ratio, default=None)


def row(program, result):
    """The cells of one row of the table, and whether everything is right."""
    if "error" in result:
        return [program, "", "", result["error"], ""], False
    ran, replayed = result["run"], result["replay"]
    worst = worst_output(ran["outputs"])
    stages = " ".join(value[:4] for value in ran["stages"].values())
    error = "not checked" if worst is None else f"{worst[0]:.2e} of {worst[1]:.2e}"
    if not ran["ok"]:
        error += " FAILED"
    same = "identical" if replayed["identical"] else f"differs at {replayed['first_difference']}"
    if replayed.get("not_comparable"):
        same += f" (not comparable: {', '.join(replayed['not_comparable'])})"
    good = bool(ran["ok"] and replayed["identical"] and worst is not None)
    return [program, str(ran["kernels"]), stages, error, f"replay: {same}"], good


def table(rows, stages):
    head = ["program", "kernels", "stage digests", "largest error of its bound", "replay"]
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in [head, *rows]]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, f"stages: {', '.join(stages)}"] if stages else lines)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--fresh", action="store_true", help="run again what ran before")
    parser.add_argument("program", nargs="*")
    options = parser.parse_args()

    programs = sorted((ROOT / "corpus/programs").glob("*.fir"))
    if options.program:
        programs = [program for program in programs if program.stem in options.program]
    if not programs:
        sys.exit("demo: no such program in corpus/programs")
    device = gpu_name()
    # A result depends on these besides its program. The command line loads the modules at run time.
    build = [ROOT / "build/bin/fusebox", *sorted((ROOT / "build/lib").glob("libfusebox_*.so"))]
    key = digest(device, str(ROOT), *build)
    RESULTS.mkdir(exist_ok=True)

    rows, stages, failed, executors = [], [], 0, set()
    for at, program in enumerate(programs, 1):
        stored = RESULTS / f"{program.stem}-{digest(key, program)}.json"
        if stored.exists() and not options.fresh:
            result = json.loads(stored.read_text())
        else:
            progress(f"[{at}/{len(programs)}] {program.stem} on {device or 'the host'}")
            start = time.monotonic()
            try:
                result = demonstrate(program)
            except (RuntimeError, OSError, ValueError, KeyError) as error:
                result = {"error": str(error)}
            if not sys.stderr.isatty():
                progress(f"[{at}/{len(programs)}] {program.stem}: {time.monotonic() - start:.1f} s")
        cells, good = row(program.stem, result)
        if good:
            for old in RESULTS.glob(f"{program.stem}-{'[0-9a-f]' * 16}.json"):
                old.unlink()
            stored.write_text(json.dumps(result))
        failed += not good
        rows.append(cells)
        if "run" in result:
            executors.add(result["run"]["executor"])
            stages = max(stages, list(result["run"]["stages"]), key=len)
    progress("")
    print(table(rows, stages))
    print(f"{len(rows) - failed} of {len(rows)} programs right, on {', '.join(sorted(executors)) or 'nothing'}"
          f"{f' ({device})' if device else ''}; bundles in {os.path.relpath(RESULTS, ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
