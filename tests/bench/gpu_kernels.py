"""Times kernels against the memory floor and against peers: the table of `corpus/schedules` and `corpus/programs` on this machine's GPU.

    python3 tests/bench/gpu_kernels.py --list
    python3 tests/bench/gpu_kernels.py --rows softmax,rms_norm --peers eager,compile --check
    python3 tests/bench/gpu_kernels.py --scale 4 --json table.jsonl

Needs the Python package (PYTHONPATH=build/python) and a PyTorch for CUDA. The floor of a row is the bytes that it must move (inputs and
outputs once each) by the rate of a 2 GiB copy in this process; for kernels that only read, by a measured read rate. A kernel that reads more
than it writes can beat that rate a little, and so can one whose last writes are still in the L2 cache when it ends: see `--scale 4`. Each
number is a median of rounds that alternate Fusebox with all peers, with the L2 cache flushed before each run (kernels/clock.py says how). The
fraction of the floor is floor / time. Fractions and ratios are cut after two digits, never rounded up. Fusebox's time is that of its kernels
and of copies and clears between them; allocation is in the peers' time, where PyTorch's cache makes it cheap, and so is a wait for the GPU
where a peer has one (Liger's cross entropy). A row that fails shows its error, and the exit code is 1. Why a peer did not run stands in full
under the table. Fusebox is measured with exact ops, as the programs are, and again with all ops fast that have a fast form (the step `precision`);
goals are for these. With --tune, the fastest neighbours of the schedulers' choices are timed as well. With --automatic, schedulers decide instead of the file's steps. The rates are measured again at the end: if they differ, so may the rows.
"""

import argparse
import json
import math
import pathlib
import sys
import time
from dataclasses import asdict, dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from kernels import rows as table  # noqa: E402

DEVICE = "cuda"  # tests without a GPU replace it
PEERS = ("eager", "compile", "autotune", "quack", "liger")


@dataclass
class Result:
    row: str
    shape: str = ""
    moved_bytes: int = 0
    floor_us: float = 0.0
    goal: float | None = None
    times: dict = field(default_factory=dict)  # by name: clock.Times, or a sentence
    error: str = ""
    plan: list = field(default_factory=list)  # the scheduler of each segment of the automatic plan
    tuned: list = field(default_factory=list)  # what a search among its neighbours found, by segment

    @property
    def fraction(self):
        return self.fraction_of("fusebox")

    def fraction_of(self, name):
        ours = self.times.get(name)
        return self.floor_us / ours.median if hasattr(ours, "median") else None

    def as_json(self):
        times = {name: asdict(t) if hasattr(t, "median") else t for name, t in self.times.items()}
        return {"row": self.row, "shape": self.shape, "moved_bytes": self.moved_bytes, "floor_us": self.floor_us, "goal": self.goal,
                "fraction": self.fraction, "fast_fraction": self.fraction_of("fast"),
                "automatic_fraction": self.fraction_of("automatic"), "plan": self.plan,
                "tuned_fraction": self.fraction_of("tuned"), "tuned": self.tuned, "times": times, "error": self.error}


def clone(inputs):
    """Copies with the same strides."""
    def copied(v):
        if isinstance(v, float):
            return v
        made = v.new_empty(1 + sum((n - 1) * s for n, s in zip(v.shape, v.stride())) if v.numel() else 0).as_strided(v.shape, v.stride())
        return made.copy_(v)
    return {name: copied(v) for name, v in inputs.items()}


def wrong(row, program, fd, inputs):
    """A sentence about the first output of Fusebox that is not the reference's, or ""."""
    from kernels import reference

    ours = clone(inputs)
    returned = iter(fd.execute(list(ours.values())))
    wanted = reference.expected(getattr(reference, program.fusion), list(inputs.values()))
    for (name, alias), value in zip(program.outputs, wanted, strict=True):
        problem = reference.difference(ours[alias] if alias else next(returned), value)
        if problem:
            return f"%{name}: {problem}"
    return ""


def measure(row, options, clock, rates, deadline, result):
    """Fills the row's Result. Errors of Fusebox and of the row itself are caught by the caller."""
    import torch

    import fusebox
    from kernels import peers

    program = row.program()
    inputs = program.inputs("gpu", row.scaled_sizes(program, options.scale), DEVICE)
    result.shape = " ".join("×".join(map(str, v.shape)) for v in inputs.values() if not isinstance(v, float))
    fd = fusebox.FusionDefinition.from_text(program.text, precision="exact")
    if options.check and (problem := wrong(row, program, fd, inputs)):
        result.error = f"WRONG {problem}"
        return
    torch.cuda.empty_cache()
    launcher = fd.launcher(list(inputs.values()))
    outputs = [o for o in launcher.outputs if isinstance(o, torch.Tensor)]
    result.moved_bytes = row.moved_bytes(program, inputs, outputs)
    copy_rate, read_rate = rates
    result.floor_us = result.moved_bytes / (read_rate if row.only_reads else copy_rate)
    calls = {"fusebox": launcher.launch}
    if fast := program.fast():
        fd = fusebox.FusionDefinition.from_text(fast)
        if options.check and (problem := wrong(row, program, fd, inputs)):
            result.error = f"WRONG with fast ops {problem}"
            return
        fast_launcher = fd.launcher(list(inputs.values()))
        calls["fast"] = fast_launcher.launch
    if options.automatic:
        fd = fusebox.FusionDefinition.from_text(program.automatic())
        if options.check and (problem := wrong(row, program, fd, inputs)):
            result.error = f"WRONG with the automatic plan {problem}"
            return
        automatic_launcher = fd.launcher(list(inputs.values()))
        calls["automatic"] = automatic_launcher.launch
        result.plan = [d.scheduler for d in fd.plan(list(inputs.values()))]
        if options.tune:
            tuned = fd.tune(list(inputs.values()))
            tuned_launcher = tuned.definition.launcher(list(inputs.values()))
            calls["tuned"] = tuned_launcher.launch
            result.tuned = [s._asdict() for s in tuned.segments]
    if {"compile", "autotune"} & set(options.peers):
        peers.forget_compiled()
    for name in options.peers:
        call = peers.make(name, program.fusion, inputs)
        if isinstance(call, str):
            result.times[name] = call
        else:
            calls[name] = call
    with torch.no_grad():
        result.times.update(clock.alternate(calls, options.rounds, deadline))


def cell(times):
    if times is None:
        return "-"
    if isinstance(times, str):
        return times if len(times) <= 24 else times[:23] + "…"
    return f"{times.median:.1f} ({times.p10:.1f}–{times.p90:.1f})"


def reasons(results):
    """{why a peer did not run: [peer (row), …]}, without the ops that a library does not have."""
    found = {}
    for result in results:
        for name, times in result.times.items():
            if isinstance(times, str) and times != "no such op":
                found.setdefault(times, []).append(f"{name} ({result.row})")
    return found


def cut(ratio):
    """Two digits, never rounded up: a goal is reached or it is not."""
    return f"{math.floor(100 * ratio + 1e-6) / 100:.2f}"


def line(result, peers):
    if result.error:
        return f"| {result.row} | {result.shape} | {result.error} |"
    peer_times = [t.median for name, t in result.times.items() if name not in ("fusebox", "fast", "automatic", "tuned") and hasattr(t, "median")]
    ours = result.times["fusebox"]
    best = f"{cut(min(peer_times) / ours.median)}×" if peer_times else "-"
    goal = "" if result.goal is None else f" of {result.goal:.2f}"
    cells = [result.row, result.shape, f"{result.moved_bytes / 1e6:.1f}", f"{result.floor_us:.1f}", cell(ours), cut(result.fraction), cell(result.times.get("fast")),
             f"{cut(result.fraction_of('fast') or result.fraction)}{goal}", best]
    if "automatic" in result.times:
        fraction = result.fraction_of("automatic")
        cells.append(f"{cell(result.times['automatic'])} = {cut(fraction)} by {'+'.join(result.plan) or 'no kernel'}")
    return "| " + " | ".join(cells + [cell(result.times.get(name)) for name in peers]) + " |"


def chosen_rows(names):
    rows = table.all_rows()
    if not names:
        return rows
    by_name = {row.name: row for row in rows}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        sys.exit(f"gpu_kernels: no row is named {', '.join(unknown)}; --list prints the names")
    return [by_name[name] for name in names]


def words(text):
    return [word for word in text.split(",") if word]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=words, default=[], help="names with commas between them; default: all")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--scale", type=int, default=1, help="so many times the rows of each input")
    parser.add_argument("--peers", type=words, default=list(PEERS), help=f"of {','.join(PEERS)}; default: all")
    parser.add_argument("--time-limit", type=float, default=0, help="seconds; rows that it leaves no time for are named, not timed")
    parser.add_argument("--json", type=pathlib.Path, help="one JSON object a line: the machine, then each row")
    parser.add_argument("--check", action="store_true", help="compares with a wider reference first; a wrong row is not timed")
    parser.add_argument("--tune", action="store_true", help="with --automatic: times its fastest neighbours too, and says which they are")
    parser.add_argument("--automatic", action="store_true", help="times the automatic plan too, with fast ops, in place of the schedule")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"no peer is named {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    return options


def main():
    options = arguments()
    rows = chosen_rows(options.rows)
    if options.list:
        for row in rows:
            print(f"{row.name:<34} {row.path}")
        return 0
    begin = time.monotonic()
    deadline = begin + options.time_limit if options.time_limit else None
    try:
        import torch
    except ModuleNotFoundError:
        print("gpu_kernels: skipped, there is no PyTorch here")
        return 0
    if not torch.cuda.is_available():
        print("gpu_kernels: skipped, there is no GPU here")
        return 0
    from kernels.clock import Clock

    clock = Clock()
    rates = clock.rates()
    machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_gb_s": rates[0] / 1e3, "read_gb_s": rates[1] / 1e3,
               "empty_us": clock.empty_us(), "rounds": options.rounds, "scale": options.scale}
    print(f"{machine['gpu']}, PyTorch {machine['torch']}: copy {machine['copy_gb_s']:.0f} GB/s, read {machine['read_gb_s']:.0f} GB/s, "
          f"two events alone {machine['empty_us']:.1f} µs; {options.rounds} rounds, {options.scale} times the size; µs: median (p10–p90)\n")
    print("| " + " | ".join(["kernel", "inputs", "MB", "floor µs", "Fusebox", "of the floor", "fast", "of the floor", "best peer / Fusebox", *(["automatic"] if options.automatic else []), *options.peers]) + " |")
    print("| " + " | ".join(["---"] * (9 + bool(options.automatic) + len(options.peers))) + " |", flush=True)
    records, results, left = [machine], [], []
    for row in rows:
        if deadline is not None and time.monotonic() > deadline:
            left.append(row.name)
            continue
        result = Result(row.name, goal=row.goal)
        try:
            measure(row, options, clock, rates, deadline, result)
        except Exception as failure:  # the table goes on; FuseboxError prints its code
            result.error = f"{type(failure).__name__}: {failure}".replace("\n", " ")[:300]
        results.append(result)
        records.append(result.as_json())
        print(line(result, options.peers), flush=True)
        if options.json:
            options.json.write_text("".join(json.dumps(record) + "\n" for record in records))
        torch.cuda.empty_cache()
    if left:
        print(f"\nno time was left for {', '.join(left)}")
    for result in results:
        for segment in result.tuned:
            if segment["fastest"] != segment["chosen"]:
                print(f"\n{result.row}, {segment['segment']}: {segment['before_us']:.1f} µs to {segment['after_us']:.1f} by {segment['fastest']}; chosen: {segment['chosen']}")
    for reason, where in reasons(results).items():
        print(f"\n{', '.join(where)}: {reason}")
    after = clock.rates()
    records.append({"copy_gb_s_after": after[0] / 1e3, "read_gb_s_after": after[1] / 1e3})
    print(f"\nafter the table: copy {after[0] / 1e3:.0f} GB/s, read {after[1] / 1e3:.0f} GB/s")
    if options.json:
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records))
    return 1 if any(record.get("error") for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
