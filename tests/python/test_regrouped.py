"""tests/bench/regrouped.py: each fusion gives torch's results on the host executor, at small shapes, and the check finds what is wrong."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "bench" / "regrouped.py"
sys.path.insert(0, str(SCRIPT.parent))

import families  # noqa: E402
import fusions  # noqa: E402
import regrouped  # noqa: E402

SMALL = {
    "gn_nchw": [(2, 96, 3, 5), (96,), (96,)],
    "gn_nhwc": [(2, 3, 5, 64), (64,), (64,)],
    "quant_block": [(5, 384)],
    "quant_block_cols": [(256, 37)],
    "quant_block2d": [(256, 384)],
    "qk_norm": [(2, 5, 3 * 4 * 16), (16,)],
    "rms_fp8_block": [(5, 256), (5, 256), (256,)],
    "swiglu_quant": [(7, 768)],
    "shift_loss": [(3, 6, 131), fusions.Labels((3, 6))],
    "avgpool_nchw": [(2, 3, 6, 10)],
    "avgpool_nhwc": [(2, 6, 10, 3)],
    "ada_ln": [(2, 7, 40), (2, 240)],
    "softmax_slice": [(2, 3, 130)],
    "split_heads_ln": [(2, 5, 192)],
}
F8 = torch.float8_e4m3fn


def results(name):
    """The outputs of Fusebox and of torch in double."""
    torch_function, define, _, dtype, cast = regrouped.torch_fusions()[name]
    inputs = fusions.made_inputs(SMALL[name], dtype, "cpu")
    return families.fusion(name, define, inputs, cast).execute(inputs), families.in_double(torch_function, inputs)


def test_every_fusion_has_a_small_shape():
    assert list(SMALL) == list(regrouped.torch_fusions())


@pytest.mark.parametrize("name", SMALL)
def test_is_right_on_the_host(name):
    ours, wanted = results(name)
    assert families.wrong(ours, wanted) == ""
    # The check fails where an output is that of other numbers: shifted by an element, or, if it is only one, by a thousandth.
    for i, t in enumerate(ours):
        other = t.flatten().roll(1).reshape(t.shape) if t.numel() > 1 else t * 1.001
        assert families.wrong([*ours[:i], other, *ours[i + 1:]], wanted).startswith(f"output {i} differs at ")


def numbers(bits):
    return torch.tensor(bits, dtype=torch.uint8).view(F8)


def test_quantized_numbers_may_be_neighbours_where_few_are():
    wanted = numbers([56] * 100)
    assert families.wrong([numbers([57] * 2 + [56] * 98)], [wanted]) == ""
    assert families.wrong([numbers([57] * 3 + [56] * 97)], [wanted]) == "output 0 differs at 0: 1.125 for 1.0, 3 of 100 do"
    assert families.wrong([numbers([56] * 99 + [58])], [wanted]) == "output 0 differs at 99: 1.25 for 1.0, 1 of 100 do"
    assert families.wrong([numbers([56 + 128] + [56] * 99)], [wanted]) == "output 0 differs at 0: -1.0 for 1.0, 1 of 100 do"
    # 0 and -0 are one number, the smallest positive and negative ones are two apart; 127 is NaN, beside 448.
    assert families.wrong([numbers([128])], [numbers([0])]) == ""
    assert families.wrong([numbers([129])], [numbers([1])]) != ""
    assert families.wrong([numbers([127])], [numbers([126])]) != ""


def test_other_numbers_may_be_off_by_rounding():
    wanted = torch.linspace(-3, 3, 1000, dtype=torch.float64)
    for dtype, part in ((torch.float32, 1e-3), (torch.float16, 1e-2), (torch.bfloat16, 1e-1)):
        assert families.wrong([wanted.to(dtype)], [wanted]) == ""
        assert families.wrong([(wanted * (1 + part)).to(dtype)], [wanted]).startswith("output 0 differs at 0: ")
    nothing = wanted.float()
    nothing[500] = float("nan")
    assert families.wrong([nothing], [wanted]).startswith("output 0 differs at 500: nan for ")


def test_an_output_has_the_shape_and_dtype_of_torchs():
    x = torch.ones(2, 3)
    assert families.wrong([x], [x.T.double()]) == "output 0 is torch.float32 [2, 3] for torch.float64 [3, 2]"
    assert families.wrong([x], [x.bfloat16()]) == "output 0 is torch.float32 [2, 3] for torch.bfloat16 [2, 3]"


@pytest.mark.parametrize("script", ["fusions.py", "regrouped.py"])
def test_plans_need_no_gpu(script):
    run = subprocess.run([sys.executable, SCRIPT.with_name(script), "--plans"], capture_output=True, text=True, check=True)
    planned = {line.split()[0] for line in run.stdout.splitlines()}
    assert planned == set((fusions if script == "fusions.py" else regrouped).torch_fusions())
