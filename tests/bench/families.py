"""Times the automatic plan against torch.compile on fusions that people write: thirteen families, each at several shapes drawn by a seed.

    python3 tests/bench/families.py --seed 1 --shapes 4
    python3 tests/bench/families.py --families softmax,adam --json table.jsonl --check

Needs the Python package (PYTHONPATH=build/python) and a PyTorch for CUDA. No steps are given: schedulers decide. Rows are drawn from 1 to 65,536,
columns from 32 to 131,072, evenly in their logarithms, half of them odd sizes, and dtypes from f32, f16 and bf16; a tensor has at most
--most-bytes. Each number is a median of rounds that alternate with PyTorch eager and torch.compile, with the L2 cache flushed before
(kernels/clock.py). A ratio is the time of torch.compile by that of Fusebox: `ratio` of the GPU's work, `wall` of whole calls from Python, one
behind the other, `graph` of calls that a CUDA graph replays, where the GPU's work takes less than 10 µs. `--plans` prints what the schedulers
decide, on any machine, and times nothing.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from kernels.chosen import chosen_names

SHORT_US = 10  # calls of less GPU time are measured by graph replay too


def _softmax_f(f, x):
    o = f.ops
    x = o.cast(x, _float())
    shifted = o.sub(x, o.broadcast(o.max(x, [1]), [False, True]))
    e = o.exp(shifted)
    return [o.truediv(e, o.broadcast(o.sum(e, [1]), [False, True]))]


def _layer_norm_f(f, x, w, b):
    o = f.ops
    x = o.cast(x, _float())
    var, mean = o.var_mean(x, [1], correction=0, keepdim=True)
    y = o.mul(o.sub(x, mean), o.rsqrt(o.add(var, 1e-5)))
    return [o.add(o.mul(y, _row(o, w)), _row(o, b))]


def _rms_norm_f(f, x, r, w):
    o = f.ops
    x = o.add(o.cast(x, _float()), o.cast(r, _float()))
    n = o.size(x, 1)
    mean = o.truediv(o.sum(o.mul(x, x), [1], keepdim=True), o.cast(n, _float()))
    return [o.mul(o.mul(x, o.rsqrt(o.add(mean, 1e-6))), _row(o, w)), x]


def _swiglu_f(f, a, b):
    o = f.ops
    return [o.mul(o.silu(o.cast(a, _float())), o.cast(b, _float()))]


def _bias_gelu_f(f, x, b):
    o = f.ops
    x = o.add(o.cast(x, _float()), _row(o, b))
    inner = o.mul(o.add(x, o.mul(o.mul(o.mul(x, x), x), 0.044715)), 0.7978845608028654)
    return [o.mul(o.mul(x, 0.5), o.add(o.tanh(inner), 1.0))]


def _nll_f(f, x, label):
    o = f.ops
    x = o.cast(x, _float())
    top = o.max(x, [1])
    total = o.sum(o.exp(o.sub(x, o.broadcast(top, [False, True]))), [1])
    picked = o.squeeze(o.take_along_axis(x, o.broadcast(label, [False, True]), 1), [1])
    return [o.sub(o.add(o.log(total), top), picked)]


def _adam_f(f, p, g, m, v):
    o = f.ops
    p, g, m, v = (o.cast(t, _float()) for t in (p, g, m, v))
    m = o.add(o.mul(m, 0.9), o.mul(g, 0.1))
    v = o.add(o.mul(v, 0.999), o.mul(o.mul(g, g), 0.001))
    return [o.sub(p, o.truediv(o.mul(m, 0.001), o.add(o.sqrt(v), 1e-8))), m, v]


def _statistics_f(f, x):
    o = f.ops
    var, mean = o.var_mean(o.cast(x, _float()), [1], correction=0)
    return [var, mean]


def _column_sum_f(f, x):
    return [f.ops.sum(f.ops.cast(x, _float()), [0])]


def _transpose_add_f(f, a, b):
    o = f.ops
    return [o.add(o.cast(a, _float()), o.cast(o.permute(b, [1, 0]), _float()))]


def _relu_transpose_f(f, x):
    y = f.ops.relu(f.ops.cast(x, _float()))
    return [y, f.ops.permute(y, [1, 0])]


def _column_softmax_f(f, x):
    o = f.ops
    x = o.cast(x, _float())
    e = o.exp(o.sub(x, o.max(x, [0], keepdim=True)))
    return [o.truediv(e, o.sum(e, [0], keepdim=True))]


def _batch_norm_f(f, x, w, b):
    o = f.ops
    x = o.cast(x, _float())
    var, mean = o.var_mean(x, [0], correction=0, keepdim=True)
    y = o.mul(o.sub(x, mean), o.rsqrt(o.add(var, 1e-5)))
    return [o.relu(o.add(o.mul(y, _row(o, w)), _row(o, b)))]


def _row(o, w):
    return o.broadcast(o.cast(w, _float()), [True, False])


def _float():
    from fusebox import DataType

    return DataType.Float


def torch_families():
    import torch
    import torch.nn.functional as F

    def layer_norm(x, w, b):
        return [F.layer_norm(x.float(), x.shape[1:], w.float(), b.float(), 1e-5)]

    def rms_norm(x, r, w):
        x = x.float() + r.float()
        return [x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * w.float(), x]

    def adam(p, g, m, v):
        p, g, m, v = p.float(), g.float(), m.float(), v.float()
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return [p - m * 0.001 / (torch.sqrt(v) + 1e-8), m, v]

    def relu_transpose(x):
        y = torch.relu(x.float())
        return [y, y.t().contiguous()]

    def batch_norm(x, w, b):
        return [torch.relu(F.batch_norm(x.float(), None, None, w.float(), b.float(), training=True, eps=1e-5))]

    def statistics(x):
        var, mean = torch.var_mean(x.float(), 1, correction=0)
        return [var, mean]

    # By family: the function of torch, that of Fusebox, the inputs ("m,n" and so on, + for values above 0, i for labels),
    # and whether results are cast to the inputs' dtype.
    return {
        "softmax": (lambda x: [torch.softmax(x.float(), 1)], _softmax_f, ["m,n"], True),
        "layer_norm": (layer_norm, _layer_norm_f, ["m,n", "n", "n"], True),
        "rms_norm_residual": (rms_norm, _rms_norm_f, ["m,n", "m,n", "n"], True),
        "swiglu": (lambda a, b: [F.silu(a.float()) * b.float()], _swiglu_f, ["m,n", "m,n"], True),
        "bias_gelu": (lambda x, b: [F.gelu(x.float() + b.float(), approximate="tanh")], _bias_gelu_f, ["m,n", "n"], True),
        "nll": (lambda x, i: [F.cross_entropy(x.float(), i, reduction="none")], _nll_f, ["m,n", "i"], False),
        "adam": (adam, _adam_f, ["m,n", "m,n", "m,n", "+m,n"], True),
        "statistics": (statistics, _statistics_f, ["m,n"], False),
        "column_sum": (lambda x: [x.float().sum(0)], _column_sum_f, ["m,n"], False),
        "transpose_add": (lambda a, b: [a.float() + b.float().t()], _transpose_add_f, ["m,n", "n,m"], True),
        "relu_transpose": (relu_transpose, _relu_transpose_f, ["m,n"], True),
        "column_softmax": (lambda x: [torch.softmax(x.float(), 0)], _column_softmax_f, ["m,n"], True),
        "batch_norm": (batch_norm, _batch_norm_f, ["m,n", "n", "n"], True),
    }


def drawn_size(rng, least, most):
    size = round(math.exp(rng.uniform(math.log(least), math.log(most))))
    # Half of the sizes are as models have them: multiples of 64.
    return max(least, size // 64 * 64) if rng.random() < 0.5 else size


def draw_shapes(name, seed, count, most_bytes):
    import torch

    rng = random.Random(f"{name} {seed}")
    while count > 0:
        m, n = drawn_size(rng, 1, 65536), drawn_size(rng, 32, 131072)
        dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16])
        if m * n * dtype.itemsize > most_bytes:
            continue
        count -= 1
        yield m, n, dtype


def shape_of(kind, m, n):
    return {"m,n": (m, n), "n,m": (n, m), "n": (n,), "i": (m,)}[kind.lstrip("+")]


def make_inputs(kinds, m, n, dtype, device):
    import torch

    generator = torch.Generator(device).manual_seed(7)
    inputs = []
    for kind in kinds:
        shape = shape_of(kind, m, n)
        if kind == "i":
            inputs.append(torch.randint(n, shape, generator=generator, device=device))
            continue
        t = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
        inputs.append((t.abs() if kind.startswith("+") else t).to(dtype))
    return inputs


def fusion(name, define, inputs, cast):
    from fusebox import FusionDefinition

    f = FusionDefinition(name)
    results = define(f, *[f.from_pytorch(t) for t in inputs])
    for r in results:
        f.add_output(f.ops.cast(r, inputs[0].dtype) if cast else r)
    return f


def in_double(torch_function, inputs):
    """What torch computes of these inputs in double: in f32, it adds up columns of 8192 with errors that a check would see."""
    import unittest.mock

    import torch

    with unittest.mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        return torch_function(*inputs)


def wrong(ours, wanted):
    """A sentence about the first output that is too far from torch's in double, or "". A number may be off by a few roundings to its dtype, and by
    what long sums in f32 add: a part of the mean. Quantized numbers are compared with those that torch quantizes (_far_quantized)."""
    import torch

    for i, (a, b) in enumerate(zip(ours, wanted, strict=True)):
        if a.shape != b.shape or b.dtype not in (a.dtype, torch.float64):
            return f"output {i} is {a.dtype} {list(a.shape)} for {b.dtype} {list(b.shape)}"
        far = _far_quantized(a, b) if a.dtype == torch.float8_e4m3fn else _far(a, b)
        if far.any():
            at = int(far.flatten().nonzero()[0])
            return f"output {i} differs at {at}: {float(a.flatten()[at])} for {float(b.flatten()[at])}, {int(far.sum())} of {far.numel()} do"
    return ""


def _far(a, b):
    """Where a is too far from b, or is no number."""
    import torch

    kind, a, b = torch.finfo(a.dtype), a.double(), b.double()
    # A result below the smallest normal number is rounded to a multiple of smallest_normal * eps.
    return ~((a - b).abs() <= 4 * kind.eps * b.abs() + 64e-6 * b.abs().mean() + kind.smallest_normal * kind.eps)


def _far_quantized(a, b):
    """Where numbers of e4m3 are NaN or lie more than one apart. A quotient in f32 can fall on the other side of a tie than one in double, so
    neighbours are right, but at most two in a hundred: where there are more of them, they are far too."""
    import torch

    def place(t):
        """The place in the order of all numbers; 0 and -0 share one."""
        bits = t.view(torch.uint8).to(torch.int16)
        return torch.where(bits < 128, bits, 128 - bits)

    a, b = place(a), place(b)
    apart = (a - b).abs()
    allowed = 1 if int((apart > 0).sum()) <= max(1, a.numel() // 50) else 0
    return (apart > allowed) | (a.abs() == 127) | (b.abs() == 127)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="", help="names with commas between them; default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", type=int, default=4, help="of each family")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--most-bytes", type=int, default=1 << 30)
    parser.add_argument("--time-limit", type=float, default=0, help="seconds")
    parser.add_argument("--check", action="store_true", help="compares with torch first")
    parser.add_argument("--plans", action="store_true", help="prints the decisions for each shape and times nothing")
    parser.add_argument("--tune", action="store_true", help="times the fastest neighbours of the schedulers' choices too")
    parser.add_argument("--json", type=pathlib.Path, help="one JSON object a line")
    return parser.parse_args()


def measure(options, clock, name, torch_function, define, kinds, cast, m, n, dtype):
    times = measure_on(options, clock, name, torch_function, define, make_inputs(kinds, m, n, dtype, "cuda"), cast)
    return {"family": name, "m": m, "n": n, **times}


def measure_on(options, clock, name, torch_function, define, inputs, cast):
    import torch

    from kernels import peers

    dtype = inputs[0].dtype
    f = fusion(name, define, inputs, cast)
    record = {"dtype": str(dtype).split(".")[1], "plan": [d.scheduler for d in f.plan(inputs)]}

    def reference(*tensors):
        results = torch_function(*tensors)
        return [r.to(dtype) for r in results] if cast else results

    if options.check and (problem := wrong(f.execute(inputs), in_double(torch_function, inputs))):
        return {**record, "error": f"WRONG {problem}"}
    peers.forget_compiled()
    compiled = torch.compile(reference, dynamic=False)
    launcher = f.launcher(inputs)
    calls = {"fusebox": launcher.launch, "compile": lambda: compiled(*inputs), "eager": lambda: reference(*inputs)}
    if options.tune:
        tuned = f.tune(inputs)
        record["tuned_segments"] = [s._asdict() for s in tuned.segments]
        tuned_launcher = tuned.definition.launcher(inputs)
        calls["tuned"] = tuned_launcher.launch
    with torch.no_grad():
        compiled(*inputs)
        times = clock.alternate(calls, options.rounds)
        record.update({key: t.median for key, t in times.items()}, ratio=ratio_of(times))
        whole = {"fusebox": lambda: f.execute(inputs), "compile": calls["compile"]}
        wall = clock.wall_us(whole)
        record.update({f"wall_{key}": t.median for key, t in wall.items()}, wall=ratio_of(wall))
        if times["fusebox"].median < SHORT_US:
            graph = clock.graph_us(whole)
            record.update({f"graph_{key}": t.median for key, t in graph.items()}, graph=ratio_of(graph))
    return record


def ratio_of(times):
    return times["compile"].median / times["fusebox"].median


def tuned_cell(record):
    if "tuned" not in record:
        return ""
    changes = "; ".join(f"{s['fastest']} (was {s['chosen']})" for s in record["tuned_segments"] if s["fastest"] != s["chosen"])
    return f" {record['tuned']:.1f} tuned{': ' + changes if changes else ''} |"


def main():
    options = arguments()
    try:
        import torch
    except ModuleNotFoundError:
        print("families: skipped, there is no PyTorch here")
        return 0
    families = torch_families()
    names = chosen_names(options.families, families, "family")
    if options.plans:
        for name in names:
            torch_function, define, kinds, cast = families[name]
            for m, n, dtype in draw_shapes(name, options.seed, options.shapes, options.most_bytes):
                inputs = make_inputs(kinds, m, n, dtype, "cpu")
                decided = fusion(name, define, inputs, cast).plan(inputs)
                print(f"{name} {m} x {n} {dtype}: " + "; ".join(f"{d.scheduler} {d.choices}" for d in decided), flush=True)
        return 0
    if not torch.cuda.is_available():
        print("families: skipped, there is no GPU here")
        return 0
    from kernels.clock import Clock

    clock, begin, records = Clock(), time.monotonic(), []
    print("| family | m × n | dtype | plan | Fusebox µs | torch.compile | eager | ratio | wall | graph |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        for m, n, dtype in draw_shapes(name, options.seed, options.shapes, options.most_bytes):
            if options.time_limit and time.monotonic() - begin > options.time_limit:
                continue
            try:
                record = measure(options, clock, name, *families[name], m, n, dtype)
            except Exception as failure:  # the table goes on
                record = {"family": name, "m": m, "n": n, "dtype": str(dtype), "error": f"{type(failure).__name__}: {failure}"[:300]}
            records.append(record)
            head = f"| {name} | {m} × {n} | {record['dtype']} |"
            if "error" in record:
                print(f"{head} {record['error']} |", flush=True)
            else:
                graph = f"{record['graph']:.2f}" if "graph" in record else "–"
                print(f"{head} {'+'.join(record['plan'])} | {record['fusebox']:.1f} | {record['compile']:.1f} | {record['eager']:.1f} | {record['ratio']:.2f} | {record['wall']:.2f} | {graph} |{tuned_cell(record)}", flush=True)
            torch.cuda.empty_cache()
            if options.json:
                options.json.write_text("".join(json.dumps(r) + "\n" for r in records))
    for key in ("ratio", "wall", "graph"):
        ratios = [r[key] for r in records if key in r]
        if ratios:
            print(f"{key}: {len(ratios)} workloads, geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    return 1 if any("error" in r for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
