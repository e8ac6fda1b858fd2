#!/usr/bin/env python3
"""The mutation score: how many of many small changes to the code a campaign of `fusebox fuzz` finds.

    ./dev mutants [--seed N] [--count N] [--time T] [--jobs J] [FOLDER...]   all of it, in build-mutants/seed-N
    ./dev mutants --generate DIR [--seed N] [--count N] [FOLDER...]          draws the mutants; needs libclang but no build
    ./dev mutants --run DIR [--time T] [--jobs J] [--limit T]                builds, and runs mutants without a result
    ./dev mutants --report DIR                                               prints the results so far

Each mutant stands behind a switch of one build, and a campaign of T seconds runs with it on. A campaign that finds something
kills it; it survives otherwise. DIR can be taken to another machine between the steps, and a run that ends early goes on
with the same command. tests/mutants/README.md lists the mutations and tells what to do about a survivor.
"""

import argparse
import os
import pathlib
import sys
import time

import campaign
import report
import tree
from tree import say


def seconds(text):
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        value = float(number) * units[unit]
    except ValueError:
        value = 0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"`{text}` is no length of time; write 60s, 5m or 1h")
    return int(value) if value == int(value) else value


def count(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no number from 1 on")
    return int(text)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the draw; 1")
    parser.add_argument("--count", type=count, default=100, help="how many mutants; 100")
    parser.add_argument("--time", type=seconds, default=60, help="of the campaign on each; 60s")
    parser.add_argument("--jobs", type=count, default=os.cpu_count(), help="campaigns at a time; the processors")
    parser.add_argument("--campaign-seeds", type=count, default=2, help="seeds of campaigns, dealt out to the mutants; 2")
    parser.add_argument("--limit", type=seconds, help="of the run, after which the same command goes on")
    parser.add_argument("--build", metavar="DIR", help="where the build goes; into the copy")
    step = parser.add_mutually_exclusive_group()
    for name in ("generate", "run", "report"):
        step.add_argument(f"--{name}", metavar="DIR")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help=f"where to mutate; {' '.join(tree.FOLDERS)}")
    a = parser.parse_args(arguments)
    a.folders = [f.rstrip("/") for f in a.folders] or list(tree.FOLDERS)
    return a


def generate(folder, a):
    folder.generate(a.seed, a.count, a.folders)


def run(folder, a):
    began = time.monotonic()

    def left():
        return max(a.limit - (time.monotonic() - began), 1) if a.limit else None

    folder.compile(a.jobs)
    say("built")
    campaigns = campaign.Campaigns(folder.build / "bin" / "fusebox", folder.path, a.time, a.campaign_seeds, a.jobs)
    # Row -s is the campaign of seed s without a mutant.
    clean = [(0, -seed, seed) for seed in range(1, a.campaign_seeds + 1)]
    campaigns.run(clean, lambda row: None, left())
    for _, row, seed in clean:
        found = campaigns.results.get(row, {})
        if found.get("outcome") == "killed":
            sys.exit(f"mutants: without a mutant, the campaign of seed {seed} finds `{found['signature']}`: {found.get('message', '')}")
    by_number = {m["id"]: m for m in folder.mutants}

    def done(row):
        verdict = f"killed by {row['signature']}" if row["outcome"] == "killed" else f"survived, {report.how_far(row)}"
        say(f"{row['id']:>4} {verdict} after {row['seconds']} s: {report.line(by_number[row['id']])[:200]}")

    tasks = [(m["id"], m["id"], m["id"] % a.campaign_seeds + 1) for m in folder.mutants]
    if not campaigns.run(tasks, done, left()):
        say("the time is up; the same command goes on from here")


def show(folder):
    results = campaign.read_results(folder.path / "results.jsonl")
    print("\n".join(report.report(folder.mutants, results, report.read_equivalent())))


def main():
    a = parse(sys.argv[1:])
    path = pathlib.Path(a.generate or a.run or a.report or tree.ROOT / "build-mutants" / f"seed-{a.seed}")
    folder = tree.Folder(path, a.build)
    if (a.run or a.report) and folder.data is None:
        sys.exit(f"mutants: {path} holds no mutants; make them with --generate {path}")
    wanted = {"seed": a.seed, "count": a.count, "folders": a.folders}
    if a.generate or (folder.data is None or not a.run and not a.report and any(folder.data[k] != v for k, v in wanted.items())):
        generate(folder, a)
    if a.generate:
        return
    if not a.report:
        run(folder, a)
    show(folder)


if __name__ == "__main__":
    main()
