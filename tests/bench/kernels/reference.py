"""The ops of the table in PyTorch, as a user writes them: the peer `eager`, what torch.compile takes, and in a wider dtype the reference.

Each function takes the inputs of the fusion of its name, in order, and returns its outputs in order, those in place too."""

import torch
import torch.nn.functional as F


def _of(x, dtype=torch.float32):
    """The dtype of intermediate results: f32, or f64 where the inputs are."""
    return torch.float64 if x.dtype == torch.float64 else dtype


def silu_mul_bias(x, y, b):
    return (F.silu(x) * y + b,)


def softmax(x):
    return (torch.softmax(x, -1),)


def layer_norm(x, w, b, eps):
    y, mean, rstd = torch.native_layer_norm(x, [x.shape[-1]], w, b, eps)
    return y, mean.flatten().to(_of(x)), rstd.flatten().to(_of(x))


def rms_norm(x, w, eps):
    return (F.rms_norm(x, [x.shape[-1]], w, eps),)


def layer_norm_backward(dy, x, mean, rstd, w):
    return torch.ops.aten.native_layer_norm_backward(dy, x, [x.shape[-1]], mean[:, None], rstd[:, None], w, w, [True, True, True])


def row_sum(x):
    return (x.sum(1, dtype=_of(x)),)


def column_sum(x):
    return (x.sum(0, dtype=_of(x)),)


def total_sum(x):
    return (x.sum(dtype=_of(x)),)


def transpose_add(a, b):
    return (a + b.t(),)


def cross_entropy(x, label):
    loss = F.cross_entropy(x.to(_of(x)), label, reduction="none")
    return loss, loss.mean()


def attention_mask_softmax(t0, t1, t2, t3):
    mask = t1 | t2
    kept = t0 * mask
    s, t = t0.shape
    added = kept[None, None, :, :s].expand(1, t3.shape[1], s, s)
    y = torch.softmax(t3.to(_of(t3)) * 0.0883883 + added.to(_of(t3)), -1)
    t1.copy_(mask)
    t0.copy_(kept)
    return t1, t0, added, y, y.to(t3.dtype)


def rope(x, cos, sin):
    first, second = x.chunk(2, -1)
    return ((x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype),)


def rope_halves(x, cos, sin):
    (y,) = rope(x.flatten(2), cos.flatten(1), sin.flatten(1))
    return (y.view(x.shape),)


def welford_batch_norm(x, w, b, rmean, rvar, momentum, eps):
    y = F.batch_norm(x, rmean, rvar, w, b, True, momentum, eps)
    return rmean, rvar, y


def gelu_dropout_mask(x, mask, scale):
    return (torch.where(mask, F.gelu(x, approximate="tanh") * scale, 0).to(x.dtype),)


def embedding_gather(table, token, position, scale):
    return ((table[token].to(_of(table)) * scale + position).to(table.dtype),)


def dequantize_rows(q, scale, bias):
    return (q * scale[:, None] + bias,)


def drop_path(x, r, k):
    return (x + r * k[:, None],)


def swizzled_transpose(x):
    return (x.t().contiguous(),)


def swizzled_copy_1d(x):
    return (x.clone(),)


def widened(inputs):
    """Copies of the inputs for the reference: floats as f64, or as f32 if one of them is large."""
    tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
    dtype = torch.float64 if max(v.numel() for v in tensors) < 1 << 24 else torch.float32
    return [v.to(dtype if v.dtype.is_floating_point else v.dtype, copy=True) if isinstance(v, torch.Tensor) else v for v in inputs]


def expected(function, inputs):
    return function(*widened(inputs))


# The part of a result's size that rounding may change: of its own dtype, and what f32 sums of a long row add.
_RELATIVE = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10, torch.float32: 2.0**-16, torch.float64: 2.0**-40}


def difference(actual, wanted):
    """A sentence about the first tensor that is not right, or "". Each element may be off by a part of its size and of the tensor's."""
    wanted = torch.as_tensor(wanted, device=actual.device)
    if actual.shape != wanted.shape:
        return f"shape {list(actual.shape)} instead of {list(wanted.shape)}"
    if not actual.dtype.is_floating_point:
        return "" if torch.equal(actual, wanted.to(actual.dtype)) else "integers differ"
    part = _RELATIVE[actual.dtype]
    worst, flat, expectation = 0.0, actual.reshape(-1), wanted.reshape(-1)
    scale = float(expectation.abs().mean()) if expectation.numel() else 0.0
    for begin in range(0, flat.numel(), 1 << 26):
        a, b = flat[begin:begin + (1 << 26)].to(wanted.dtype), expectation[begin:begin + (1 << 26)]
        excess = ((a - b).abs() / (part * (b.abs() + scale) + 1e-30)).max()
        worst = max(worst, float("inf") if excess.isnan() else float(excess))
    return "" if worst <= 1.0 else f"an element is off by {worst:.3g} times what is allowed"
