"""The peers of a row: PyTorch eager and torch.compile, QuACK and Liger. Each is a call without arguments, or the reason why there is none.

QuACK and Liger are imported if they are installed. Liger's cross entropy also computes the gradient, where a gradient is asked for; here none
is. torch.compile with max-autotune runs without CUDA graphs, which would copy inputs."""

import importlib

import torch

from kernels import reference

ALL = ("eager", "compile", "autotune", "quack", "liger")


def _quack_rope(x, cos, sin):
    rotary = importlib.import_module("quack.rotary")
    half = cos.shape[-1] // 2
    c, s = cos[:, :half].contiguous(), sin[:, :half].contiguous()
    heads = x.unsqueeze(2)  # one head
    return lambda: rotary.apply_rotary_emb(heads, c, s)


def _rope_rows(inputs):
    """The inputs of rope_halves as those of rope."""
    return {"x": inputs["x"].flatten(2), "cos": inputs["cos"].flatten(1), "sin": inputs["sin"].flatten(1)}


def _quack(fusion, i):
    if fusion == "rope_halves":
        fusion, i = "rope", _rope_rows(i)
    quack = importlib.import_module("quack")
    if fusion == "softmax":
        return lambda: quack.softmax(i["x"])
    if fusion == "rms_norm":
        return lambda: quack.rmsnorm(i["x"], i["w"], eps=i["eps"])
    if fusion == "layer_norm":
        norms = importlib.import_module("quack.rmsnorm")
        w, b = i["w"].float(), i["b"].float()  # it takes f32 only
        return lambda: norms.layernorm_fwd(i["x"], w, b, eps=i["eps"], return_rstd=True, return_mean=True)
    if fusion == "layer_norm_backward":
        norms = importlib.import_module("quack.rmsnorm")
        w = i["w"].float()
        return lambda: norms.layernorm_bwd(i["x"], w, i["dy"], i["rstd"], i["mean"])
    if fusion == "cross_entropy":
        return lambda: quack.cross_entropy(i["x"], i["label"], reduction="mean")
    if fusion == "rope":
        return _quack_rope(i["x"], i["cos"], i["sin"])
    return "no such op"


def _liger(fusion, i):
    ops = {name: name for name in ("softmax", "rms_norm", "layer_norm", "cross_entropy", "rope")} | {"layer_norm_backward": "layer_norm"}
    if fusion == "rope_halves":
        fusion, i = "rope", _rope_rows(i)
    if fusion not in ops:
        return "no such op"
    module = importlib.import_module(f"liger_kernel.ops.{ops[fusion]}")
    if fusion == "softmax":
        return lambda: module.LigerSoftmaxFunction.apply(i["x"])
    if fusion == "rms_norm":
        return lambda: module.LigerRMSNormFunction.apply(i["x"], i["w"], i["eps"])
    if fusion == "layer_norm":
        return lambda: module.LigerLayerNormFunction.apply(i["x"], i["w"], i["b"], i["eps"])
    if fusion == "layer_norm_backward":
        return lambda: module.layer_norm_backward(i["dy"], i["x"], i["w"], i["w"], i["mean"], i["rstd"], needs_dw=True, needs_db=True)
    if fusion == "cross_entropy":
        return lambda: module.LigerCrossEntropyFunction.apply(i["x"], i["label"], None)
    # It rotates in place, queries and keys: half of the batch as each.
    heads = i["x"].clone().unsqueeze(1)
    half = heads.shape[0] // 2
    return lambda: module.LigerRopeFunction.apply(heads[:half], heads[half:2 * half], i["cos"], i["sin"])


def forget_compiled():
    """Drops what torch.compile has kept: before the calls of another row are made, never between those of one row."""
    torch._dynamo.reset()


def _compiled(function, arguments, mode):
    call = torch.compile(function, mode=mode, dynamic=False)
    return lambda: call(*arguments)


def make(name, fusion, inputs):
    """The peer's call on these inputs, after one run; or a word why it cannot run."""
    arguments = list(inputs.values())
    function = getattr(reference, fusion)
    try:
        if name == "eager":
            call = lambda: function(*arguments)  # noqa: E731
        elif name == "compile":
            call = _compiled(function, arguments, None)
        elif name == "autotune":
            call = _compiled(function, arguments, "max-autotune-no-cudagraphs")
        else:
            call = _quack(fusion, inputs) if name == "quack" else _liger(fusion, inputs)
        if isinstance(call, str):
            return call
        with torch.no_grad():
            call()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
        return call
    except ModuleNotFoundError as missing:
        return "not installed" if missing.name and missing.name.split(".")[0] in ("quack", "liger_kernel") else f"needs {missing.name}"
    except Exception as failure:  # a peer that cannot take the shape must not end the table
        return f"fails: {type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"[:200]
