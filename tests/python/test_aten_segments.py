"""Segments that ATen runs: their outputs have ATen's strides, which are known before the run and decide the kernels that read them."""

import json
import re

import pytest
import torch
from support import HAS_ATEN, PROGRAMS, fusebox, written

from fusebox import FusionDefinition

needs_aten = pytest.mark.skipif(not HAS_ATEN, reason="built without ATen")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is there")

ATTENTION = PROGRAMS / "attention_mask_softmax.fir"


def with_the_slice_in_aten():
    """The program, with its slice run by ATen, and every other op as a kernel of its own."""
    text = ATTENTION.read_text()
    fusion = text[text.index("fusion @") : text.index("steps @")]
    made = re.findall(r"^  %(\w+) = (\w+)", fusion, re.M)
    steps = [
        f'  assign of [%{name}] name "s_{name}" by {"aten" if op == "slice" else "kernel"}\n' for name, op in made if op not in ("input", "size")
    ]
    return fusion + "steps @attention_mask_softmax {\n" + "".join(steps) + "}\n" + text[text.index("inputs @") :]


def only(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


@needs_aten
def test_attention_with_its_slice_in_aten(tmp_path):
    file, bundle = written(tmp_path, with_the_slice_in_aten(), "attention.fir"), tmp_path / "attention.fuse"
    run = only(fusebox("run", file, "--on", "host", "--check", "--record", bundle, "--json"))
    assert run["ok"] and all(out["ok"] for out in run["outputs"])
    # T = S + 1, so the slice is not contiguous, and its readers ask for strides.
    host = fusebox("show", bundle, "--level", "host").stdout
    assert "= run_aten" in host and "tensor_stride" in host
    assert only(fusebox("replay", bundle, "--json"))["identical"]
    for stage in ("scheduled", "kernel"):
        assert only(fusebox("replay", bundle, "--from", stage, "--json"))["identical"]


@needs_aten
def test_inference_changes_kernels(tmp_path):
    file = written(tmp_path, with_the_slice_in_aten(), "attention.fir")
    inferred = only(fusebox("run", file, "--on", "host", "--check", "--json"))
    plain = only(fusebox("run", file, "--on", "host", "--check", "--no-infer-contiguity", "--json"))
    assert plain["ok"] and inferred["ok"]
    for stage in ("segments", "kernel", "source", "host", "crossings"):
        assert plain["stages"][stage] != inferred["stages"][stage], stage
    assert plain["stages"]["fusion"] == inferred["stages"]["fusion"]
    shown = fusebox("show", file, "--level", "host", "--no-infer-contiguity").stdout
    assert "run_aten" in shown and "tensor_stride" not in shown


SLICE = """fusion @f {
  %m, %n, %k = size
  %x = input f32[%m, %n] contiguous
  %w = input f32[%k] contiguous
  %y = slice %x from [0, 0] to [%m, %k] by [1, 1]
  %t = permute %y dims [1, 0]
  %e = exp %y
  %b = broadcast_in_dim %w to [%m, %k] dims [1]
  %z = add %e, %b
  output %t
  output %e
  output %z
}
steps @f {
  assign of [%y, %t, %e] name "part" by aten
  assign of [%b, %z] name "sum" by kernel
  inline_most of []
}
"""


def expected(x, w):
    y = x[:, : w.numel()]
    return [y.t(), y.exp(), y.exp() + w]


@needs_aten
def test_outputs_have_the_strides_of_torch():
    fd = FusionDefinition.from_text(SLICE)
    for n, k in ((6, 6), (6, 5), (7, 7), (6, 5), (6, 1)):
        x, w = torch.randn(4, n), torch.randn(k)
        for got, want in zip(fd.execute([x, w]), expected(x, w)):
            torch.testing.assert_close(got, want)
            if k > 1:
                assert got.stride() == want.stride()


@needs_gpu
def test_segments_run_on_the_gpu_by_fast_calls():
    fd = FusionDefinition.from_text(SLICE)
    for n, k in ((600, 600), (600, 599), (600, 600), (600, 599)):
        x, w = torch.randn(40, n, device="cuda"), torch.randn(k, device="cuda")
        for _ in range(3):
            made = fd.execute([x, w])
            for got, want in zip(made, expected(x, w)):
                torch.testing.assert_close(got, want)
                assert got.stride() == want.stride() and got.device == want.device
    info = fd.cache_info()
    assert info.hits >= 8, info


@needs_gpu
def test_a_call_does_not_wait_for_the_gpu():
    fd = FusionDefinition.from_text(SLICE)
    x, w = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, device="cuda")
    fd.execute([x, w])
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        fd.execute([x, w])
        # A capture refuses whatever waits, or works on another stream.
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            made = fd.execute([x, w])
    graph.replay()
    torch.cuda.synchronize()
    for got, want in zip(made, expected(x, w)):
        torch.testing.assert_close(got, want)


@needs_gpu
def test_results_are_apart_from_inputs():
    fd = FusionDefinition.from_text(SLICE)
    x, w = torch.randn(8, 8, device="cuda"), torch.randn(8, device="cuda")
    for _ in range(2):
        before = x.clone()
        t = fd.execute([x, w])[0]
        t.zero_()
        assert torch.equal(x, before)


@needs_aten
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_integers_at_their_edges(dtype):
    """Division by 0 gives 0, the least integer by -1 wraps, and shifts may be wider than the dtype: what ATen would stop at."""
    least, word, width = torch.iinfo(dtype).min, {torch.int8: "i8", torch.int32: "i32", torch.int64: "i64"}[dtype], torch.iinfo(dtype).bits
    ops = ("div", "mod", "remainder", "bitwise_left_shift", "bitwise_right_shift", "logical_right_shift", "pow")
    lines = "".join(f"  %o{i} = {op} %x, %y\n" for i, op in enumerate(ops)) + "".join(f"  output %o{i}\n" for i in range(len(ops)))
    names = ", ".join(f"%o{i}" for i in range(len(ops)))
    text = f"fusion @f {{\n  %n = size\n  %x = input {word}[%n]\n  %y = input {word}[%n]\n{lines}}}\n"
    x = torch.tensor([least, least, 7, -7, -7, 5, -1, 3], dtype=dtype)
    y = torch.tensor([-1, 0, 0, 2, -2, 100, 100, 3], dtype=dtype)
    made = FusionDefinition.from_text(text + f'steps @f {{\n  assign of [{names}] name "all" by aten\n}}\n').execute([x, y])
    unfused = FusionDefinition.from_text(text).execute([x, y])
    for ours, kernel, op in zip(made, unfused, ops):
        assert torch.equal(ours, kernel), op
    assert made[0].tolist() == [least, 0, 0, -3, 3, 0, 0, 1]
    assert made[1].tolist() == [0, 0, 0, -1, -1, 5, -1, 0]
    assert made[4].tolist()[5:7] == [0, -1]


@needs_aten
def test_a_quotient_of_8_bit_floats_is_rounded_to_float_first():
    # 6 / 0.1 is 60 in float, half-way between two numbers of this dtype, and a little less before it is rounded to float.
    text = 'fusion @f {\n  %s = input f8e5m2[2] contiguous\n  %y = div %s, 0.1_f64\n  output %y\n}\nsteps @f {\n  assign of [%y] name "a" by aten\n}\n'
    fd = FusionDefinition.from_text(text)
    x = torch.tensor([6.0, 3.0]).to(torch.float8_e5m2)
    assert fd.execute([x])[0].float().tolist() == [64.0, 32.0]
    fd.validate([x])
