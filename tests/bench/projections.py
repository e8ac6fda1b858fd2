"""Times products of matrices with their epilogues against PyTorch: eager, torch.compile, and its own call for both.

    python3 tests/bench/projections.py --check
    python3 tests/bench/projections.py --shapes 4096x4096x4096 --json table.jsonl

Needs the Python package (PYTHONPATH=build/python) and a PyTorch for CUDA. No steps are given: the automatic plan decides. The column `plan` has
its segments; `unfused` is the same product with each op behind it a segment of its own. Each number is the median of rounds that alternate,
with the L2 cache flushed before (kernels/clock.py). A ratio is the time of PyTorch, or of torch.compile, by that of Fusebox. Exit code 1 if a
result is wrong, or if a ratio to PyTorch is below --least. `--plans` prints what the schedulers decide, on any machine, and times nothing.
"""

import argparse
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from kernels.chosen import chosen_names

SHAPES = "16384x1024x4096,8192x4096x1024,4096x4096x4096,1024x768x3072,128x4096x4096,2048x1000x513"


def _float():
    from fusebox import DataType

    return DataType.Float


def _cast(o, x, dtype):
    return x if x.dtype == dtype else o.cast(x, dtype)


def _gelu(o, x):
    inner = o.mul(o.add(x, o.mul(o.mul(o.mul(x, x), x), 0.044715)), 0.7978845608028654)
    return o.mul(o.mul(x, 0.5), o.add(o.tanh(inner), 1.0))


def _workloads():
    import torch
    import torch.nn.functional as F

    # By name: the function of torch, that of Fusebox, and the one call of PyTorch's for both, if there is one.
    def linear_gelu(o, x, w, b):
        return _cast(o, _gelu(o, _cast(o, o.linear(x, w, b), _float())), x.dtype)

    def scale_bias(o, x, w, b):
        y = o.mul(_cast(o, o.linear(x, w), _float()), 0.125)
        return _cast(o, o.add(y, o.broadcast(_cast(o, b, _float()), [True, False])), x.dtype)

    return {
        "linear": (lambda x, w, b: F.linear(x, w, b), lambda o, x, w, b: o.linear(x, w, b), None),
        "linear_relu": (
            lambda x, w, b: F.relu(F.linear(x, w, b)),
            lambda o, x, w, b: o.relu(o.linear(x, w, b)),
            lambda x, w, b: torch._addmm_activation(b, x, w.t()),
        ),
        "linear_gelu": (
            lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"),
            linear_gelu,
            lambda x, w, b: torch._addmm_activation(b, x, w.t(), use_gelu=True),
        ),
        "scale_bias": (
            lambda x, w, b: F.linear(x, w) * 0.125 + b,
            scale_bias,
            lambda x, w, b: torch.addmm(b, x, w.t(), alpha=0.125),
        ),
    }


def inputs_of(shape, dtype, device):
    import torch

    m, k, n = shape
    generator = torch.Generator(device).manual_seed(7)
    draw = lambda *sizes: torch.randn(sizes, generator=generator, device=device, dtype=torch.float32)  # noqa: E731
    return [draw(m, k).to(dtype), (draw(n, k) / math.sqrt(k)).to(dtype), draw(n).to(dtype)]


def fusion(name, define, inputs, unfused=False):
    from fusebox import FusionDefinition

    f = FusionDefinition(name, unfused=unfused)
    f.add_output(define(f.ops, *[f.from_pytorch(t) for t in inputs]))
    return f


def wrong(ours, theirs, wide):
    """The largest error of Fusebox in units of the mean of the results, if it is more than twice PyTorch's own."""
    error = lambda t: float((t.double() - wide).abs().max() / wide.abs().mean())  # noqa: E731
    mine, other = error(ours), error(theirs)
    return f"an error of {mine:.2e} beside {other:.2e} of PyTorch's" if not mine <= 2 * other + 1e-5 else ""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="", help="names with commas between them; default: all")
    parser.add_argument("--shapes", default=SHAPES, help="rows x depth x columns, with commas between them")
    parser.add_argument("--dtypes", default="bfloat16,float16,float32")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--least", type=float, default=0.0, help="the least ratio to PyTorch eager")
    parser.add_argument("--check", action="store_true", help="compares with PyTorch first")
    parser.add_argument("--plans", action="store_true", help="prints the decisions and times nothing")
    parser.add_argument("--json", type=pathlib.Path, help="one JSON object a line")
    return parser.parse_args()


def measure(options, clock, name, workload, shape, dtype):
    import torch

    from kernels import peers

    reference, define, one_call = workload
    inputs = inputs_of(shape, dtype, "cuda")
    f, unfused = fusion(name, define, inputs), fusion(name, define, inputs, unfused=True)
    plan = " ".join([d.scheduler, *map(str, d.choices.values())]) if len(plans := f.plan(inputs)) == 1 and (d := plans[0]) else f"{len(plans)} segments"
    record = {"workload": name, "shape": "x".join(map(str, shape)), "dtype": str(dtype).split(".")[1], "plan": plan}
    if options.check and (problem := wrong(f.execute(inputs)[0], reference(*inputs), reference(*[t.double() for t in inputs]))):
        return {**record, "error": f"WRONG {problem}"}
    peers.forget_compiled()
    compiled = torch.compile(reference, dynamic=False)
    calls = {
        "fusebox": lambda: f.execute(inputs),
        "unfused": lambda: unfused.execute(inputs),
        "eager": lambda: reference(*inputs),
        "compile": lambda: compiled(*inputs),
    }
    if one_call:
        calls["one_call"] = lambda: one_call(*inputs)
    with torch.no_grad():
        for call in calls.values():
            call()
        times = {key: t.median for key, t in clock.alternate(calls, options.rounds).items()}
    return {**record, **times, "to_eager": times["eager"] / times["fusebox"], "to_compile": times["compile"] / times["fusebox"]}


def main():
    options = arguments()
    try:
        import torch
    except ModuleNotFoundError:
        print("projections: skipped, there is no PyTorch here")
        return 0
    workloads = _workloads()
    names = chosen_names(options.workloads, workloads, "workload")
    shapes = [tuple(map(int, s.split("x"))) for s in options.shapes.split(",")]
    dtypes = [getattr(torch, d) for d in options.dtypes.split(",")]
    if options.plans:
        for name in names:
            for dtype in dtypes:
                inputs = inputs_of((64, 32, 48), dtype, "cpu")
                decided = fusion(name, workloads[name][1], inputs).plan(inputs)
                print(f"{name} {dtype}: " + "; ".join(f"{d.scheduler} {d.choices}" for d in decided))
        return 0
    if not torch.cuda.is_available():
        print("projections: skipped, there is no GPU here")
        return 0
    from kernels.clock import Clock

    clock, records = Clock(), []
    print("| workload | rows × depth × columns | dtype | plan | Fusebox µs | unfused | eager | torch.compile | its one call | to eager | to compile |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        for shape in shapes:
            for dtype in dtypes:
                try:
                    r = measure(options, clock, name, workloads[name], shape, dtype)
                except Exception as failure:  # the table goes on
                    r = {"workload": name, "shape": shape, "dtype": str(dtype), "error": f"{type(failure).__name__}: {failure}"[:300]}
                records.append(r)
                head = f"| {name} | {' × '.join(map(str, shape))} | {r['dtype']} |"
                if "error" in r:
                    print(f"{head} {r['error']} |", flush=True)
                    continue
                one_call = f"{r['one_call']:.1f}" if "one_call" in r else "–"
                print(
                    f"{head} {r['plan']} | {r['fusebox']:.1f} | {r['unfused']:.1f} | {r['eager']:.1f} | {r['compile']:.1f} | {one_call} | {r['to_eager']:.2f} | {r['to_compile']:.2f} |",
                    flush=True,
                )
                if options.json:
                    options.json.write_text("".join(json.dumps(x) + "\n" for x in records))
    for key in ("to_eager", "to_compile"):
        if ratios := [r[key] for r in records if key in r]:
            print(f"{key}: {len(ratios)} workloads, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")
    return 1 if any("error" in r or r["to_eager"] < options.least for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
