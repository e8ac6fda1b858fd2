"""Measures how small the shrinker makes findings. For seeded defects and several seeds, it reduces a finding of a
campaign. A table shows the sizes before and after, the factor of (ops + steps) x elements, and the seconds.

    python tests/bench/reduce_findings.py --seeds 3 --time 20                 # all defects
    python tests/bench/reduce_findings.py split-swapped extent-truncated
    python tests/bench/reduce_findings.py --corpus corpus/defects             # keeps the smallest of each as text
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUSEBOX = pathlib.Path(os.environ.get("FUSEBOX_BUILD", ROOT / "build")) / "bin" / "fusebox"


def defect_names():
    return re.findall(r'FUSEBOX_DEFECT\(\w+, "([a-z-]+)"', (ROOT / "ir" / "table" / "defect_table.inc").read_text())


def run(*command, timeout=600):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, check=False)


def find(defect, seed, seconds, folder):
    """The bundles of a finding that shows only with the defect."""
    run(FUSEBOX, "fuzz", "--score", "--defect", defect, "--seed", seed, "--seeds", 1, "--time", f"{seconds}s", "--out", folder)
    return sorted(folder.rglob("*.fuse"))


def reduce(bundle, out, seconds):
    result = run(FUSEBOX, "reduce", bundle, "-o", out, "--json", "--time", seconds)
    if result.returncode != 0:
        return {"failed": (result.stdout + result.stderr).strip()}
    return json.loads(result.stdout.splitlines()[-1])


def is_case_of(file, defect):
    """True if the oracles find something with the defect and nothing without it."""
    broken = run(FUSEBOX, "fuzz", "--case", file, "--defect", defect)
    return broken.returncode == 1 and run(FUSEBOX, "fuzz", "--case", file).returncode == 0


def complexity(row):
    return ((row["after"]["ops"] + row["after"]["steps"]) * max(row["after"]["elements"], 1), row["after"]["steps"])


def size(s):
    return f"{s['ops']:>3} ops {s['steps']:>3} steps {s['elements']:>6} elements"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("defects", nargs="*")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--time", type=float, default=20, help="seconds to a finding")
    parser.add_argument("--reduce-time", type=float, default=60)
    parser.add_argument("--corpus", type=pathlib.Path, help="a folder for the smallest case of each defect")
    a = parser.parse_args()
    rows, missing = [], []
    for defect in a.defects or defect_names():
        best = None
        for seed in range(a.first_seed, a.first_seed + a.seeds):
            with tempfile.TemporaryDirectory() as folder:
                found = find(defect, seed, a.time, pathlib.Path(folder))
                for bundle in found[:1]:
                    out = pathlib.Path(folder) / "small.fir"
                    row = reduce(bundle, out, f"{a.reduce_time}s")
                    if "failed" in row:
                        print(f"{defect:<28} {seed}: {row['failed']}", flush=True)
                        continue
                    row.update(defect=defect, seed=seed)
                    rows.append(row)
                    print(f"{defect:<28} {seed}: {size(row['before'])} -> {size(row['after'])}, {row['factor']:8.0f} x, "
                          f"{row['judged']:>5} judged, {row['seconds']:5.1f} s  {row['signature']}", flush=True)
                    if a.corpus and (best is None or complexity(row) < complexity(best)) and is_case_of(out, defect):
                        best = row
                        a.corpus.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(out, a.corpus / f"{defect}.fir")
        if not any(r["defect"] == defect for r in rows):
            missing.append(defect)
            print(f"{defect:<28} no finding was reduced", flush=True)
        elif a.corpus and best is None:
            print(f"{defect:<28} no finding that stands alone as text", flush=True)
    if rows:
        middle = lambda key: statistics.median(key(r) for r in rows)  # noqa: E731
        worst = lambda key: max(key(r) for r in rows)  # noqa: E731
        ops, steps, seconds = lambda r: r["after"]["ops"], lambda r: r["after"]["steps"], lambda r: r["seconds"]
        print(f"{len(rows)} findings of {len({r['defect'] for r in rows})} defects; median {middle(ops)} ops, {middle(steps)} steps, "
              f"{middle(lambda r: r['after']['elements'])} elements, {middle(lambda r: r['factor']):.0f} times smaller, "
              f"{middle(seconds):.1f} s; worst {worst(ops)} ops, {worst(steps)} steps, {worst(seconds):.1f} s; "
              f"{sum(ops(r) > 3 or steps(r) > 4 for r in rows)} of more than 3 ops or 4 steps")
    print(f"without a finding: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
