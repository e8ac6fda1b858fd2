"""What the schedulers choose, beside what `fd.tune` finds faster: over shapes of the families of families.py, drawn by a seed.

    python3 tests/bench/choices.py --seconds 400 --seed 700 --json tuned.jsonl    # on a GPU: tunes one shape after another
    python3 tests/bench/choices.py --against tests/bench/tuned_h100.jsonl.gz       # anywhere: what a change of the schedulers changes

Needs the Python package (PYTHONPATH=build/python) and PyTorch. Tuning takes about a second a shape, so one card says in minutes where the
schedulers choose badly; several cards tune by different seeds (CUDA_VISIBLE_DEVICES) into files that may be put together. Each line of the file
holds a shape, the choice and its microseconds, and the fastest neighbour of the choice and its microseconds.

`tuned_h100.jsonl.gz` holds 1170 shapes by four seeds (700 to 703), tuned on four H100 on 2026-11-27 at commit 7690e375.

`--against` plans the file's shapes again, which takes milliseconds each and no GPU, and prints those whose choice is another now: GAIN if it
has become what was the fastest, LOSS? if it was the fastest before (another is as fast at best), and the rest without a word. A table in front
says by family what was left to gain when the file was made.
"""

import argparse
import collections
import gzip
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import families
from kernels.chosen import chosen_names


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="", help="names with commas between them; default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--most-bytes", type=int, default=1 << 29, help="of a tensor")
    parser.add_argument("--json", type=pathlib.Path, help="the file to write")
    parser.add_argument("--against", type=pathlib.Path, help="a file that was written before")
    return parser.parse_args()


def tune(options, known, names):
    import torch

    end, count = time.monotonic() + options.seconds, 0
    shapes = {name: families.draw_shapes(name, options.seed, 1 << 30, options.most_bytes) for name in names}
    with options.json.open("w") as out:
        while time.monotonic() < end:
            for name in names:
                _, define, kinds, cast = known[name]
                m, n, dtype = next(shapes[name])
                inputs = families.make_inputs(kinds, m, n, dtype, "cuda")
                tuned = families.fusion(name, define, inputs, cast).tune(inputs)
                for segment in tuned.segments:
                    record = {"family": name, "m": m, "n": n, "dtype": str(dtype).split(".")[1], "before": segment.before_us, "after": segment.after_us}
                    out.write(json.dumps({**record, "chosen": segment.chosen, "fastest": segment.fastest}) + "\n")
                out.flush()
                count += 1
                del inputs, tuned
                torch.cuda.empty_cache()
                if time.monotonic() > end:
                    break
    print(f"{count} shapes tuned")


def choice_now(known, record):
    """What the schedulers choose for the shape of a record, as text; None if they cut it into several segments."""
    import torch

    _, define, kinds, cast = known[record["family"]]
    m, n, dtype = record["m"], record["n"], getattr(torch, record["dtype"])
    inputs = [torch.empty(families.shape_of(kind, m, n), dtype=torch.int64 if kind == "i" else dtype) for kind in kinds]
    decided = families.fusion(record["family"], define, inputs, cast).plan(inputs)
    return " ".join([decided[0].scheduler, *(f"{k} {v}" for k, v in decided[0].choices.items())]) if len(decided) == 1 else None


def mean(ratios):
    return statistics.geometric_mean(ratios) if ratios else 1.0


def compare(options, known, names):
    written = options.against.read_bytes()
    written = gzip.decompress(written) if options.against.suffix == ".gz" else written
    records = [json.loads(line) for line in written.decode().splitlines()]
    records = [r for r in records if r["family"] in names]
    gains = collections.defaultdict(list)
    for r in records:
        gains[r["family"]].append(r["before"] / r["after"])
    print("| family | shapes | left to gain | by 4 % or more | most |\n|---|---|---|---|---|")
    for name in names:
        if ratios := gains[name]:
            print(f"| {name} | {len(ratios)} | {mean(ratios):.3f} | {sum(g > 1.04 for g in ratios)} | {max(ratios):.2f} |")
    kinds = {"GAIN": [], "LOSS?": [], "": []}
    changed = []
    for r in records:
        if (now := choice_now(known, r)) == r["chosen"]:
            continue
        kind = "GAIN" if now == r["fastest"] else "LOSS?" if r["chosen"] == r["fastest"] else ""
        kinds[kind].append(r["before"] / r["after"])
        changed.append(f"{kind} {r['family']} {r['m']} x {r['n']} {r['dtype']}, {r['before']:.1f} µs, fastest {r['after']:.1f}\n")
        changed.append(f"  was {r['chosen']}\n  is  {now}\n" + (f"  fastest {r['fastest']}\n" if not kind else ""))
    print("\n" + "".join(changed))
    print(
        f"{sum(map(len, kinds.values()))} of {len(records)} choices are others: {len(kinds['GAIN'])} are the fastest now, {mean(kinds['GAIN']):.3f} times "
        f"as fast; {len(kinds['LOSS?'])} were the fastest; {len(kinds[''])} neither"
    )


def main():
    options = arguments()
    if (options.json is None) == (options.against is None):
        sys.exit("choices: give --json FILE to tune on a GPU, or --against FILE to compare with what was tuned")
    try:
        import torch
    except ModuleNotFoundError:
        print("choices: skipped, there is no PyTorch here")
        return
    known = families.torch_families()
    names = chosen_names(options.families, known, "family")
    if options.against:
        compare(options, known, names)
    elif torch.cuda.is_available():
        tune(options, known, names)
    else:
        print("choices: skipped, there is no GPU here")


if __name__ == "__main__":
    main()
