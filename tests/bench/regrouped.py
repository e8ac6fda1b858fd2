"""Times the automatic plan against torch.compile on fusions as people write them in models, with reshapes and slices: norms of groups and of heads,
scales of blocks of 128, halves and thirds of one projection, shifted logits, pooling.

    python3 tests/bench/regrouped.py --check
    python3 tests/bench/regrouped.py --fusions gn_nchw,swiglu_quant --plans

Needs what families.py needs, and has the options, the clock and the table of fusions.py. The functions cast their results themselves, because a
fusion returns several dtypes: bf16, e4m3, and f32 for scales. Sizes are symbols, one for each axis of each input, as from_pytorch makes them.
"""

import sys

import fusions
from fusions import Labels

FP8_MAX = 448.0  # the largest number of e4m3


def _types():
    from fusebox import DataType

    return DataType


def _f32(o, x):
    return o.cast(x, _types().Float)


def _count(o, x, axes):
    """How many elements each reduction over the axes has, as f32."""
    count = o.size(x, axes[0])
    for axis in axes[1:]:
        count = o.mul(count, o.size(x, axis))
    return _f32(o, count)


def _mean(o, x, axes):
    return o.truediv(o.sum(x, axes, keepdim=True), _count(o, x, axes))


def _rms_normalised(o, x):
    """Each row of the last axis by its root mean square."""
    return o.mul(x, o.rsqrt(o.add(_mean(o, o.mul(x, x), [x.ndim - 1]), 1e-6)))


def _quantized(o, x, axes):
    """The tensor in e4m3, and a scale for each block; a block spans the axes."""
    scale = o.truediv(o.maximum(o.max(o.abs(x), axes), 1e-12), FP8_MAX)
    y = o.truediv(x, o.broadcast(scale, [i in axes for i in range(x.ndim)]))
    return o.cast(o.clamp(y, -FP8_MAX, FP8_MAX), _types().Float8_e4m3fn), scale


def _quantized_rows(o, x):
    """The matrix in e4m3, and a scale for each 128 elements of a row."""
    y, scale = _quantized(o, o.reshape(x, [o.size(x, 0), -1, 128]), [2])
    return [o.reshape(y, o.shape(x)), scale]


def _group_norm(grouped, axes, channel):
    """`grouped(sizes)`: the shape with groups. `axes`: those of the shape with groups that a group has. `channel`: the axis of channels in x."""

    def define(f, x, w, b):
        o = f.ops
        per_channel = [i != channel for i in range(4)]
        y = o.reshape(_f32(o, x), grouped(o.shape(x)))
        y = o.sub(y, _mean(o, y, axes))
        y = o.mul(y, o.rsqrt(o.add(_mean(o, o.mul(y, y), axes), 1e-5)))
        y = o.mul(o.reshape(y, o.shape(x)), o.broadcast(_f32(o, w), per_channel))
        return [o.cast(o.silu(o.add(y, o.broadcast(_f32(o, b), per_channel))), x.dtype)]

    return define


def _quant_block(f, x):
    return _quantized_rows(f.ops, _f32(f.ops, x))


def _quant_block_cols(f, x):
    o = f.ops
    y, scale = _quantized(o, o.reshape(_f32(o, x), [-1, 128, o.size(x, 1)]), [1])
    return [o.reshape(y, o.shape(x)), scale]


def _quant_block2d(f, x):
    o = f.ops
    blocks = [o.div(o.size(x, 0), 128), 128, o.div(o.size(x, 1), 128), 128]
    y, scale = _quantized(o, o.reshape(_f32(o, x), blocks), [1, 3])
    return [o.reshape(y, o.shape(x)), scale]


def _qk_norm(f, x, w):
    o = f.ops
    heads = o.reshape(x, [o.size(x, 0), o.size(x, 1), 3, -1, o.size(w, 0)])
    b, s, _, h, d = o.shape(heads)

    def normalised(i):
        part = o.squeeze(o.slice(heads, [0, 0, i, 0, 0], [b, s, i + 1, h, d]), [2])
        y = o.mul(_rms_normalised(o, _f32(o, part)), o.broadcast(_f32(o, w), [True, True, True, False]))
        return o.permute(o.cast(y, x.dtype), [0, 2, 1, 3])

    return [normalised(0), normalised(1)]


def _rms_fp8_block(f, x, r, w):
    o = f.ops
    y = o.add(_f32(o, x), _f32(o, r))
    scaled = o.mul(_rms_normalised(o, y), o.broadcast(_f32(o, w), [True, False]))
    return [o.cast(y, x.dtype), *_quantized_rows(o, scaled)]


def _swiglu_quant(f, x):
    o = f.ops
    m, columns = o.shape(x)
    n = o.div(columns, 2)
    gate, up = o.slice(x, [0, 0], [m, n]), o.slice(x, [0, n], [m, columns])
    return _quantized_rows(o, o.mul(o.silu(_f32(o, gate)), _f32(o, up)))


def _shift_loss(f, x, label):
    o = f.ops
    b, s, n = o.shape(x)
    x = _f32(o, o.slice(x, [0, 0, 0], [b, o.sub(s, 1), n]))
    label = o.slice(label, [0, 1], [b, s])
    top = o.max(x, [2])
    total = o.sum(o.exp(o.sub(x, o.broadcast(top, [False, False, True]))), [2])
    picked = o.squeeze(o.take_along_axis(x, o.broadcast(label, [False, False, True]), 2), [2])
    return [o.sum(o.sub(o.add(o.log(total), top), picked), [0, 1])]


def _avgpool_nchw(f, x):
    o = f.ops
    n, c, h, w = o.shape(x)
    windows = o.reshape(x, [n, c, o.div(h, 2), 2, o.div(w, 2), 2])
    return [o.cast(o.mul(o.sum(_f32(o, windows), [3, 5]), 0.25), x.dtype)]


def _avgpool_nhwc(f, x):
    o = f.ops
    n, h, w, c = o.shape(x)
    windows = o.reshape(x, [n, o.div(h, 2), 2, o.div(w, 2), 2, c])
    return [o.cast(o.mul(o.sum(_f32(o, windows), [2, 4]), 0.25), x.dtype)]


def _ada_ln(f, x, modulation):
    o = f.ops
    b, d = o.size(x, 0), o.size(x, 2)
    shift = o.slice(modulation, [0, 0], [b, d])
    scale = o.slice(modulation, [0, d], [b, o.mul(d, 2)])
    per_row = lambda t: o.broadcast(_f32(o, t), [False, True, False])  # noqa: E731
    var, mean = o.var_mean(_f32(o, x), [2], correction=0, keepdim=True)
    y = o.mul(o.sub(_f32(o, x), mean), o.rsqrt(o.add(var, 1e-6)))
    return [o.cast(o.add(o.mul(y, o.add(per_row(scale), 1.0)), per_row(shift)), x.dtype)]


def _softmax_slice(f, x):
    o = f.ops
    b, s, n = o.shape(x)
    y = _f32(o, o.slice(x, [0, 0, 0], [b, s, o.sub(n, 1)]))
    e = o.exp(o.sub(y, o.max(y, [2], keepdim=True)))
    return [o.cast(o.truediv(e, o.sum(e, [2], keepdim=True)), x.dtype)]


def _split_heads_ln(f, x):
    o = f.ops
    heads = _f32(o, o.reshape(x, [o.size(x, 0), o.size(x, 1), -1, 64]))
    return [o.cast(o.permute(_rms_normalised(o, heads), [0, 2, 1, 3]), x.dtype)]


def torch_fusions():
    """Rows as fusions.torch_fusions has them."""
    import torch
    import torch.nn.functional as F

    bf16, fp8 = torch.bfloat16, torch.float8_e4m3fn

    def gn_nchw(x, w, b):
        return [F.silu(F.group_norm(x.float(), 32, w.float(), b.float(), 1e-5)).to(x.dtype)]

    def gn_nhwc(x, w, b):
        groups = x.float().reshape(*x.shape[:3], 32, -1)
        var, mean = torch.var_mean(groups, (1, 2, 4), correction=0, keepdim=True)
        y = ((groups - mean) * torch.rsqrt(var + 1e-5)).reshape(x.shape)
        return [F.silu(y * w.float() + b.float()).to(x.dtype)]

    def quantized(x, dims):
        scale = x.abs().amax(dims, keepdim=True).clamp(min=1e-12) / FP8_MAX
        return (x / scale).clamp(-FP8_MAX, FP8_MAX).to(fp8), scale.squeeze(dims)

    def quantized_rows(x):
        y, scale = quantized(x.reshape(x.shape[0], -1, 128), (2,))
        return [y.reshape(x.shape), scale]

    def quant_block_cols(x):
        y, scale = quantized(x.float().reshape(-1, 128, x.shape[1]), (1,))
        return [y.reshape(x.shape), scale]

    def quant_block2d(x):
        y, scale = quantized(x.float().reshape(x.shape[0] // 128, 128, x.shape[1] // 128, 128), (1, 3))
        return [y.reshape(x.shape), scale]

    def rms_normalised(x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    def qk_norm(x, w):
        q, k, _ = x.reshape(*x.shape[:2], 3, -1, w.shape[0]).unbind(2)
        return [(rms_normalised(t.float()) * w.float()).to(x.dtype).transpose(1, 2).contiguous() for t in (q, k)]

    def rms_fp8_block(x, r, w):
        y = x.float() + r.float()
        return [y.to(x.dtype), *quantized_rows(rms_normalised(y) * w.float())]

    def swiglu_quant(x):
        gate, up = x.chunk(2, -1)
        return quantized_rows(F.silu(gate.float()) * up.float())

    def shift_loss(x, label):
        return [F.cross_entropy(x[:, :-1].float().flatten(0, 1), label[:, 1:].flatten(), reduction="sum")]

    def avgpool_nchw(x):
        n, c, h, w = x.shape
        return [x.reshape(n, c, h // 2, 2, w // 2, 2).float().mean((3, 5)).to(x.dtype)]

    def avgpool_nhwc(x):
        n, h, w, c = x.shape
        return [x.reshape(n, h // 2, 2, w // 2, 2, c).float().mean((2, 4)).to(x.dtype)]

    def ada_ln(x, modulation):
        shift, scale = modulation[:, None].float().chunk(6, -1)[:2]
        return [(F.layer_norm(x.float(), x.shape[-1:], eps=1e-6) * (1 + scale) + shift).to(x.dtype)]

    def softmax_slice(x):
        return [torch.softmax(x[..., :-1].float(), -1).to(x.dtype)]

    def split_heads_ln(x):
        return [rms_normalised(x.reshape(*x.shape[:2], -1, 64).float()).to(x.dtype).transpose(1, 2).contiguous()]

    return {
        "gn_nchw": (
            gn_nchw,
            _group_norm(lambda s: [s[0], 32, -1, s[2], s[3]], [2, 3, 4], 1),
            [[(32, 320, 64, 64), (320,), (320,)], [(8, 512, 128, 128), (512,), (512,)]],
            bf16,
            False,
        ),
        "gn_nhwc": (
            gn_nhwc,
            _group_norm(lambda s: [*s[:3], 32, -1], [1, 2, 4], 3),
            [[(32, 64, 64, 320), (320,), (320,)], [(8, 128, 128, 512), (512,), (512,)]],
            bf16,
            False,
        ),
        "quant_block": (lambda x: quantized_rows(x.float()), _quant_block, [[(8192, 4096)]], bf16, False),
        "quant_block_cols": (quant_block_cols, _quant_block_cols, [[(8192, 4096)]], bf16, False),
        "quant_block2d": (quant_block2d, _quant_block2d, [[(4096, 4096)]], bf16, False),
        "qk_norm": (qk_norm, _qk_norm, [[(4, 4096, 12288), (128,)]], bf16, False),
        "rms_fp8_block": (rms_fp8_block, _rms_fp8_block, [[(8192, 4096), (8192, 4096), (4096,)]], bf16, False),
        "swiglu_quant": (swiglu_quant, _swiglu_quant, [[(8192, 28672)]], bf16, False),
        "shift_loss": (shift_loss, _shift_loss, [[(8, 2048, 32000), Labels((8, 2048))]], bf16, False),
        "avgpool_nchw": (avgpool_nchw, _avgpool_nchw, [[(64, 64, 112, 112)]], bf16, False),
        "avgpool_nhwc": (avgpool_nhwc, _avgpool_nhwc, [[(64, 112, 112, 64)]], bf16, False),
        "ada_ln": (ada_ln, _ada_ln, [[(32, 1024, 1152), (32, 6912)]], bf16, False),
        "softmax_slice": (softmax_slice, _softmax_slice, [[(64, 512, 1024)]], bf16, False),
        "split_heads_ln": (split_heads_ln, _split_heads_ln, [[(4, 4096, 2048)]], bf16, False),
    }


if __name__ == "__main__":
    sys.exit(fusions.run("regrouped", __doc__, torch_fusions))
