"""The benchmark tests/bench/gpu_kernels.py without a GPU, and the schedules of corpus/schedules on the host executor: right at sizes around
the ones that they were written for, and refused where their vectors do not fit."""

import json
import subprocess
import sys

import pytest
import torch
from support import ROOT, fusebox

import fusebox as package
from fusebox import FusionDefinition

sys.path.insert(0, str(ROOT / "tests" / "bench"))
import gpu_kernels  # noqa: E402
from kernels import reference  # noqa: E402
from kernels import rows as table  # noqa: E402
from kernels.clock import Times  # noqa: E402
from kernels.programs import Program, stored_bytes  # noqa: E402

ROWS = table.all_rows()
SCHEDULES = table.SCHEDULES
NAMES = [row.name for row in SCHEDULES]


def run_bench(*arguments):
    command = [sys.executable, str(ROOT / "tests/bench/gpu_kernels.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def around(row):
    """Sizes near the host's: each symbol one or one step more and less, and primes; and rows long enough for several warps."""
    program = row.program()
    base = program.sizes("host")
    for symbol in base:
        step = row.multiples.get(symbol, 1)
        wanted = [base[symbol] + step, base[symbol] - step, 13 * step, 1 * step]
        if symbol in ("n", "d", "h", "l") and len(base) <= 3:
            wanted += [131 * step, 263 * step]
        for extent in wanted:
            sizes = {**base, symbol: extent}
            if "T" in sizes:
                sizes["T"] = max(sizes["T"], sizes["S"])
            yield sizes


def wrong_at(row, sizes):
    program = row.program()
    return gpu_kernels.wrong(row, program, FusionDefinition.from_text(program.text), program.inputs("host", sizes))


def test_each_schedule_has_a_row_and_each_row_a_reference():
    files = {path.stem for path in (ROOT / "corpus/schedules").glob("*.fir")}
    assert files == set(NAMES)
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        program = row.program()
        assert callable(getattr(reference, program.fusion))
        assert set(program.sizes("host")) == set(program.sizes("gpu")) >= {row.scaled, *row.sizes, *row.multiples}
        for symbol, width in row.multiples.items():
            assert row.scaled_sizes(program, 1)[symbol] % width == 0


@pytest.mark.parametrize("row", SCHEDULES, ids=NAMES)
def test_a_schedule_is_legal(row):
    shown = fusebox("show", ROOT / row.path, "--level", "plan")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("plan @")


@pytest.mark.parametrize("row", SCHEDULES, ids=NAMES)
def test_no_constant_of_a_schedule_is_an_extent_of_the_table(row):
    program = row.program()
    steps = program.text[program.text.index("steps @"):program.text.index("inputs @")]
    numbers = {int(word) for word in steps.replace(",", " ").split() if word.isdigit()}
    large = {n for n in row.scaled_sizes(program, 1).values() if n > 64}
    assert not numbers & large


@pytest.mark.parametrize("row", SCHEDULES, ids=NAMES)
def test_a_schedule_is_right_around_its_sizes(row):
    for sizes in around(row):
        problem = wrong_at(row, sizes)
        assert not problem, f"{sizes}: {problem}"


@pytest.mark.parametrize("row", [r for r in SCHEDULES if r.multiples], ids=[r.name for r in SCHEDULES if r.multiples])
def test_an_extent_that_does_not_fit_the_vectors_is_refused(row):
    base = row.program().sizes("host")
    for symbol in row.multiples:
        sizes = {**base, symbol: base[symbol] + 1}
        if "T" in sizes:
            sizes["T"] = max(sizes["T"], sizes["S"])
        with pytest.raises(package.FuseboxError) as refused:
            wrong_at(row, sizes)
        assert refused.value.code == "E0404"


# Bytes read and written where inputs and outputs once each is not the whole answer, at the host's sizes.
COUNTED_BY_HAND = {
    # S = 8, T = 9, H = 3: T0 and T1 both ways, T2, T3; T49 without its expanded axis, T84, T85.
    "attention_mask_softmax": 2 * (72 * 2 + 72) + 72 + 192 * 2 + 64 * 2 + 192 * 4 + 192 * 2,
    "corpus/attention_mask_softmax": 2 * (30 * 2 + 30) + 30 + 75 * 2 + 25 * 2 + 75 * 4 + 75 * 2,
    # Six rows of the table and not all eleven: two of the seven tokens are the same.
    "embedding_gather": 6 * 24 * 2 + 7 * 8 + 2 * 7 * 24 * 2,
    "corpus/embedding_gather": 6 * 13 * 2 + 7 * 8 + 2 * 7 * 13 * 2,
    # The running statistics both ways.
    "welford_batch_norm": 2 * 180 * 4 + 2 * 5 * 4 + 2 * 2 * 5 * 4,
    "corpus/welford_batch_norm": 2 * 105 * 4 + 2 * 5 * 4 + 2 * 2 * 5 * 4,
}


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_launch_repeats_the_run_and_moves_the_bytes_of_inputs_and_outputs(row):
    program = row.program()
    inputs = program.inputs("host")
    launcher = FusionDefinition.from_text(program.text).launcher(list(inputs.values()))
    outputs = launcher.outputs
    moved = row.moved_bytes(program, inputs, outputs)
    if row.name in COUNTED_BY_HAND:
        assert moved == COUNTED_BY_HAND[row.name]
    else:
        tensors = [*[v for v in inputs.values() if isinstance(v, torch.Tensor)], *outputs]
        assert moved == sum(t.numel() * t.element_size() for t in tensors)
    if any(alias for _, alias in program.outputs):
        return  # the next run has other inputs
    first = [t.clone() for t in outputs]
    for t in outputs:
        t.zero_()
    launcher.launch()
    launcher.launch()
    assert all(torch.equal(a, b) for a, b in zip(first, outputs, strict=True))


def test_a_launcher_reads_its_inputs_anew_and_clears_its_workspace():
    program = Program.read("corpus/schedules/total_sum.fir")
    x = program.inputs("host")["x"]
    launcher = FusionDefinition.from_text(program.text).launcher([x])
    x.fill_(0.5)
    for _ in range(3):
        launcher.launch()
        assert launcher.outputs[0] == 0.5 * x.numel()


def test_a_launcher_needs_kernels():
    text = "fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = exp %x\n  output %y\n}\n"
    fd = FusionDefinition.from_text(text + 'steps @f {\n  assign of [%y] name "a" by aten\n}\n')
    with pytest.raises(package.FuseboxError) as refused:
        fd.launcher([torch.ones(3)])
    assert refused.value.code == "E0212"


def test_a_text_names_its_fusion_and_steps():
    fusion = "fusion @%s {\n  %%n = size\n  %%x = input f32[%%n] contiguous\n  %%y = exp %%x\n  output %%y\n}\n"
    two = fusion % "f" + fusion % "g" + "steps @g {\n  split %y.i0 by 4 -> o, t\n}\n"
    assert "split" in FusionDefinition.from_text(two, "g").to_string()
    assert "split" not in FusionDefinition.from_text(two, "f").to_string()
    for arguments in (("h",), ("f", "fast")):
        with pytest.raises(package.FuseboxError) as refused:
            FusionDefinition.from_text(two, *arguments)
        assert refused.value.code == "E0102"


def test_inputs_follow_the_sizes():
    program = Program.read("corpus/programs/silu_mul_bias.fir")
    assert program.inputs("host", {"m": 3, "n": 9})["y"].stride() == (12, 1)  # three elements between rows, as in the file
    labels = Program.read("corpus/schedules/cross_entropy.fir").inputs("host", {"m": 2000, "n": 8})["label"]
    assert 0 <= int(labels.min()) and int(labels.max()) == 7
    again = program.inputs("host"), program.inputs("host")
    assert torch.equal(again[0]["x"], again[1]["x"])
    assert stored_bytes(torch.empty(1, 5, dtype=torch.bfloat16).expand(7, 5)) == 10


def test_a_wrong_result_is_noticed():
    wanted = torch.randn(5, 133, dtype=torch.float64)
    right = wanted.to(torch.bfloat16)
    assert reference.difference(right, wanted) == ""
    for spoil in (lambda t: t[2, 7].add_(0.1), lambda t: t[4, 132].fill_(float("nan")), lambda t: t[0].copy_(t[1])):
        wrong = right.clone()
        spoil(wrong)
        assert reference.difference(wrong, wanted)
    assert reference.difference(right[:4], wanted)
    assert reference.difference(torch.tensor([1, 2]), torch.tensor([1, 3]))
    row = SCHEDULES[NAMES.index("softmax")]
    program = row.program()
    broken = FusionDefinition.from_text(program.text)
    broken.program.set_defects(["reduction-init-inside"])
    assert gpu_kernels.wrong(row, program, broken, program.inputs("host", {"n": 520}))


def test_the_command_line():
    listed = run_bench("--list")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [row.name for row in ROWS]
    assert run_bench("--list", "--rows", "softmax,rms_norm").stdout.count("\n") == 2
    unknown = run_bench("--rows", "soft")
    assert unknown.returncode == 1 and "no row is named soft" in unknown.stderr
    assert run_bench("--peers", "numpy").returncode == 2
    if not torch.cuda.is_available():
        skipped = run_bench()
        assert skipped.returncode == 0 and "there is no GPU" in skipped.stdout


class OneRun:
    """In place of a clock: each call runs once and takes a microsecond."""

    def rates(self):
        return 1e3, 1e3

    def empty_us(self):
        return 0.0

    def alternate(self, calls, rounds, deadline=None):
        for call in calls.values():
            call()
        return {name: Times(1.0, 1.0, 1.0, rounds) for name in calls}


def test_the_table_goes_on_after_a_row_that_fails(monkeypatch, capsys, tmp_path):
    rows = [
        table.Row("good", "corpus/schedules/softmax.fir", sizes={"m": 3, "n": 136}),
        table.Row("refused", "corpus/schedules/softmax.fir", sizes={"m": 3, "n": 135}),
        table.Row("missing", "corpus/schedules/none.fir"),
        table.Row("wrong", "corpus/schedules/rms_norm.fir", sizes={"m": 3, "n": 136}),
        table.Row("last", "corpus/schedules/embedding_gather.fir", sizes={"v": 11, "d": 16, "t": 5}, scaled="t"),
    ]
    monkeypatch.setattr(table, "all_rows", lambda: rows)
    monkeypatch.setattr(gpu_kernels, "DEVICE", "cpu")
    monkeypatch.setattr("kernels.clock.Clock", OneRun)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "none")
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(reference, "rms_norm", lambda x, w, eps: (x,))
    monkeypatch.setattr(sys, "argv", ["gpu_kernels", "--check", "--peers", "eager,quack", "--scale", "2", "--json", str(tmp_path / "t")])
    assert gpu_kernels.main() == 1
    lines = {line.split(" | ")[0][2:]: line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")}
    assert "6×136" in lines["good"] and "not installed" in lines["good"]
    assert "| refused | 6×135 | FuseboxValueError: E0404" in lines["refused"]
    assert "FileNotFoundError" in lines["missing"]
    assert "WRONG %y: an element" in lines["wrong"]
    assert "11×16 10 10×16" in lines["last"]
    records = [json.loads(line) for line in (tmp_path / "t").read_text().splitlines()]
    assert [r.get("row") for r in records[1:-1]] == [row.name for row in rows]
    assert records[-1] == {"copy_gb_s_after": 1.0, "read_gb_s_after": 1.0}
    assert records[5]["moved_bytes"] == 11 * 16 * 2 + 10 * 8 + 2 * 10 * 16 * 2


def test_a_line_shows_times_errors_and_missing_peers():
    times = {"fusebox": Times(50.0, 49.0, 52.0, 30), "eager": Times(100.0, 99.0, 101.0, 30), "quack": "not installed"}
    result = gpu_kernels.Result("softmax", "16×8", 1000, 45.0, 0.91, times)
    shown = gpu_kernels.line(result, ["eager", "quack", "liger"])
    assert "| 0.90 of 0.91 | 2.00× |" in shown and shown.endswith("| 100.0 (99.0–101.0) | not installed | - |")
    assert json.loads(json.dumps(result.as_json()))["times"]["quack"] == "not installed"
    assert [gpu_kernels.cut(r) for r in (0.916, 0.9, 0.29, 1.003, 0.899999)] == ["0.91", "0.90", "0.29", "1.00", "0.89"]
    other = gpu_kernels.Result("rope", times={"quack": "not installed", "eager": "fails: " + 80 * "x", "liger": "no such op"})
    assert gpu_kernels.reasons([result, other]) == {"not installed": ["quack (softmax)", "quack (rope)"], "fails: " + 80 * "x": ["eager (rope)"]}
    assert gpu_kernels.line(gpu_kernels.Result("softmax", error="E0404 a vector"), []).endswith("| E0404 a vector |")
