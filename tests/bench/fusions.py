"""Times the automatic plan against torch.compile on fusions of fixed shapes that families.py does not draw: reductions over a middle axis or over
several, joined and padded tensors, permuted axes, values broadcast along rows, scales by a maximum, few long rows.

    python3 tests/bench/fusions.py
    python3 tests/bench/fusions.py --fusions cat_columns,pad_columns --check

Needs what families.py needs, and prints kernel times of the same clock, in µs. --plans prints what the schedulers decide for a GPU of this
machine, or for that of the default, and times nothing.
"""

import argparse
import sys

import families
from kernels.chosen import chosen_names


def _f32(o, x):
    from fusebox import DataType

    return o.cast(x, DataType.Float)


def _softmax(axis):
    def define(f, x):
        o = f.ops
        x = _f32(o, x)
        e = o.exp(o.sub(x, o.max(x, [axis], keepdim=True)))
        return [o.truediv(e, o.sum(e, [axis], keepdim=True))]

    return define


def _normalised(axes):
    def define(f, x):
        o = f.ops
        x = _f32(o, x)
        var, mean = o.var_mean(x, axes, correction=0, keepdim=True)
        return [o.mul(o.sub(x, mean), o.rsqrt(o.add(var, 1e-5)))]

    return define


def _sum(axes):
    return lambda f, x: [f.ops.sum(_f32(f.ops, x), axes)]


def _scaled_by_max(axes):
    def define(f, x):
        o = f.ops
        x = _f32(o, x)
        return [o.truediv(x, o.max(o.abs(x), axes, keepdim=True))]

    return define


def _gradients_of_columns(f, g, x):
    o = f.ops
    g, x = _f32(o, g), _f32(o, x)
    return [o.sum(o.mul(g, x), [0]), o.sum(g, [0])]


def _scale_and_bias(f, x, s, w):
    o = f.ops
    return [o.add(o.mul(_f32(o, x), o.broadcast(_f32(o, s), [False, True])), o.broadcast(_f32(o, w), [True, False]))]


def _joined(axis):
    return lambda f, a, b: [f.ops.cat([f.ops.relu(_f32(f.ops, a)), f.ops.relu(_f32(f.ops, b))], axis)]


def _padded(f, x):
    return [f.ops.pad(f.ops.relu(_f32(f.ops, x)), [1, 1])]


def _permuted(dims):
    return lambda f, x: [f.ops.permute(f.ops.relu(_f32(f.ops, x)), dims)]


def _outer_product(f, a, b):
    o = f.ops
    return [o.mul(o.broadcast(_f32(o, a), [False, True]), o.broadcast(_f32(o, b), [True, False]))]


def torch_fusions():
    """By name: the function of torch, that of Fusebox, the shapes of the inputs of each run, their dtype, and whether results are cast to it."""
    import torch
    import torch.nn.functional as F

    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16

    def normalised(axes):
        def call(x):
            var, mean = torch.var_mean(x.float(), axes, correction=0, keepdim=True)
            return [(x.float() - mean) * torch.rsqrt(var + 1e-5)]

        return call

    def scaled_by_max(axes):
        return lambda x: [x.float() / x.float().abs().amax(axes, keepdim=True)]

    def softmax(axis):
        return lambda x: [torch.softmax(x.float(), axis)]

    def permuted(dims):
        return lambda x: [x.float().relu().permute(dims).contiguous()]

    def joined(axis):
        return lambda a, b: [torch.cat([a.float().relu(), b.float().relu()], axis)]

    return {
        "softmax_middle": (softmax(1), _softmax(1), [[(2048, 64, 16)], [(64, 512, 96)], [(16, 2048, 512)]], bf16, True),
        "softmax_few_rows": (softmax(1), _softmax(1), [[(8, 524288)], [(1, 33554432)], [(16, 300000)]], bf16, True),
        "norm_few_rows": (normalised((1,)), _normalised([1]), [[(8, 400000)], [(1, 8000000)]], f32, True),
        "norm_channels_last": (normalised((1,)), _normalised([1]), [[(32, 784, 256)], [(16, 3136, 64)]], f16, True),
        "norm_channels_first": (normalised((0, 2)), _normalised([0, 2]), [[(64, 512, 784)], [(32, 256, 3136)], [(16, 2048, 49)]], bf16, True),
        "norm_groups": (normalised((2,)), _normalised([2]), [[(32, 32, 25088)], [(16, 32, 125440)]], f16, True),
        "sum_middle": (lambda x: [x.float().sum(1)], _sum([1]), [[(64, 512, 96)], [(16, 2048, 512)], [(4096, 32, 128)]], bf16, False),
        "sum_ends": (lambda x: [x.float().sum((0, 2))], _sum([0, 2]), [[(64, 512, 784)], [(32, 256, 3136)], [(16, 2048, 49)]], bf16, False),
        "sums_of_columns": (
            lambda g, x: [(g.float() * x.float()).sum(0), g.float().sum(0)],
            _gradients_of_columns,
            [[(8192, 4096)] * 2, [(65536, 768)] * 2],
            bf16,
            False,
        ),
        "scale_rows": (scaled_by_max((1,)), _scaled_by_max([1]), [[(16384, 4096)], [(4096, 16384)]], bf16, True),
        "scale_columns": (scaled_by_max((0,)), _scaled_by_max([0]), [[(16384, 4096)]], bf16, True),
        "scale_all": (scaled_by_max((0, 1)), _scaled_by_max([0, 1]), [[(8192, 4096)], [(1024, 1024)]], bf16, True),
        "scale_and_bias": (
            lambda x, s, w: [x.float() * s.float()[:, None] + w.float()],
            _scale_and_bias,
            [[(8192, 8192), (8192,), (8192,)], [(30000, 1001), (30000,), (1001,)]],
            bf16,
            True,
        ),
        "cat_columns": (joined(1), _joined(1), [[(8192, 4096), (8192, 4096)], [(8192, 1000), (8192, 3001)]], bf16, True),
        "cat_rows": (joined(0), _joined(0), [[(8192, 4096), (1000, 4096)]], bf16, True),
        "pad_columns": (lambda x: [F.pad(x.float().relu(), (1, 1))], _padded, [[(8192, 4096)], [(8192, 4094)]], bf16, True),
        "permute_last": (permuted((0, 2, 1)), _permuted([0, 2, 1]), [[(64, 784, 256)], [(64, 256, 3136)]], f16, True),
        "permute_heads": (permuted((0, 2, 1, 3)), _permuted([0, 2, 1, 3]), [[(16, 2048, 16, 64)], [(8, 4096, 32, 128)]], bf16, True),
        "outer_product": (lambda a, b: [a.float()[:, None] * b.float()], _outer_product, [[(16384,), (4096,)], [(10007,), (3001,)]], f32, True),
    }


class Labels(tuple):
    """The shape of an input of labels, which choose from the last axis of the first input."""


def made_inputs(shapes, dtype, device):
    import torch

    if device == "meta":
        return [torch.empty(shape, dtype=torch.int64 if isinstance(shape, Labels) else dtype, device=device) for shape in shapes]
    generator = torch.Generator(device).manual_seed(7)
    return [
        torch.randint(shapes[0][-1], shape, generator=generator, device=device)
        if isinstance(shape, Labels)
        else torch.randn(shape, generator=generator, device=device).to(dtype)
        for shape in shapes
    ]


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fusions", default="", help="names with commas between them; default: all")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--check", action="store_true", help="compares with torch in double first")
    parser.add_argument("--plans", action="store_true", help="prints the decisions and times nothing")
    parser.set_defaults(tune=False)
    return parser.parse_args()


def run(script, description, table):
    """Times the fusions of a table, or prints their plans, as the options on the command line say. Returns the exit code: 1 if a row failed.
    `table()` gives rows as torch_fusions does."""
    options = arguments(description)
    try:
        import torch
    except ModuleNotFoundError:
        print(f"{script}: skipped, there is no PyTorch here")
        return 0
    fusions = table()
    names = chosen_names(options.fusions, fusions, "fusion")
    if options.plans:
        print_plans(fusions, names)
        return 0
    if not torch.cuda.is_available():
        print(f"{script}: skipped, there is no GPU here")
        return 0
    from kernels.clock import Clock

    clock, failed = Clock(), False
    print("| fusion | shapes | dtype | plan | Fusebox µs | torch.compile | eager | ratio |\n|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        torch_function, define, runs, dtype, cast = fusions[name]
        for shapes in runs:
            try:
                r = families.measure_on(options, clock, name, torch_function, define, made_inputs(shapes, dtype, "cuda"), cast)
            except Exception as failure:  # the table goes on
                r = {"error": f"{type(failure).__name__}: {failure}"[:300]}
            head = f"| {name} | {text_of(shapes)} | {str(dtype).split('.')[1]} |"
            if "error" in r:
                failed = True
                print(f"{head} {r['error']} |", flush=True)
            else:
                times = " | ".join(f"{r[key]:.1f}" for key in ("fusebox", "compile", "eager"))
                print(f"{head} {'+'.join(r['plan'])} | {times} | {r['ratio']:.2f} |", flush=True)
            torch.cuda.empty_cache()
    return 1 if failed else 0


def print_plans(fusions, names):
    for name in names:
        _, define, runs, dtype, cast = fusions[name]
        for shapes in runs:
            inputs = made_inputs(shapes, dtype, "meta")
            decided = families.fusion(name, define, inputs, cast).plan(inputs)
            print(f"{name} {text_of(shapes)} {dtype}: " + "; ".join(f"{d.scheduler} {d.choices}" for d in decided), flush=True)


def text_of(shapes):
    return ", ".join(" × ".join(map(str, shape)) for shape in shapes)


if __name__ == "__main__":
    sys.exit(run("fusions", __doc__, torch_fusions))
