"""The command line: programs of several segments, by kernels and by ATen."""

import pytest

from support import HAS_ATEN, fusebox, only, twice, written

needs_aten = pytest.mark.skipif(not HAS_ATEN, reason="built without ATen")


@pytest.fixture
def small(tmp_path):
    return written(tmp_path, twice())


SEGMENTS = """fusion @segments {
  %m, %n = size
  %last = sub %n, 1
  %x = input f32[%m, %n] contiguous
  %acc = input f32[%m] contiguous
  %eps = input f32
  %scale = add %eps, 1.0_f32
  %e = exp %x
  %s = sum %e over [1]
  %t = mul %s, %scale
  %lf = cast %last as f32
  %u = truediv %t, %lf
  %total = add %acc, %u
  %ub = broadcast %u mask [0, 1]
  %d = sub %x, %ub
  %y = neg %d
  output %y
  output %total alias %acc
}
steps @segments {
  assign of [%total] name "total" by aten
  assign of [%e] name "head"
  assign of [%s, %t, %u] name "rows" by aten
  assign of [%ub, %d, %y] name "tail"
  split %y.i1 by 4 -> o, t
  transform_like %y to []
  parallelize %y.i0 on grid.x
  parallelize %y.t on block.x
  parallelize_like %y to []
  inline_most of []
}
inputs @segments host {
  %x = f32[3, 13] normal seed 1
  %acc = f32[3] normal seed 2
  %eps = 0.5_f32
}
"""


@needs_aten
def test_segments_of_kernels_and_aten(tmp_path):
    program, bundle = tmp_path / "segments.fir", tmp_path / "segments.fuse"
    program.write_text(SEGMENTS)
    run = only(fusebox("run", program, "--on", "host", "--check", "--record", bundle, "--json"))
    assert run["ok"] and run["kernels"] == 2 and {"segments", "crossings"} <= run["stages"].keys()
    assert all(out["ok"] for out in run["outputs"])
    for stage in ("fusion", "scheduled", "kernel"):
        assert only(fusebox("replay", bundle, "--from", stage, "--json"))["identical"]
    shown = fusebox("show", bundle, "--level", "host").stdout
    order = [shown.index(f'name "{name}"') for name in ("head", "rows", "tail")]
    assert order == sorted(order) and "run_aten" in shown
    back = tmp_path / "back.fir"
    assert fusebox("convert", bundle, back).returncode == 0
    assert only(fusebox("run", back, "--on", "host", "--json"))["stages"] == run["stages"]


@needs_aten
@pytest.mark.parametrize(
    "old, new, code, place",
    [
        ('name "tail"', 'name "head"', "E0210", "segment head"),
        ("of [%e] ", "of [%e, %scale] ", "E0301", "%scale"),
        ("of [%s, %t, %u]", "of [%s, %t]", "E0210", "%u"),
        ('assign of [%total]', 'assign of [%s] name "total" by kernel\n  assign of [%total]', "E0302", "@total"),
        ("split %y.i1", "split %u.i0", "E0302", "%u"),
        ("by aten\n  assign of [%e]", "by communicate\n  assign of [%e]", "E0212", "segment total"),
    ],
)
def test_assignments_that_are_refused(tmp_path, old, new, code, place):
    program = tmp_path / "segments.fir"
    assert old in SEGMENTS
    program.write_text(SEGMENTS.replace(old, new))
    run = fusebox("run", program, "--on", "host", "--json")
    error = only(run)["error"]
    assert run.returncode == 2 and error["code"] == code and error["place"] == place


def test_rewrites_are_part_of_a_schedule(small, tmp_path):
    steps, bundle = tmp_path / "steps.txt", tmp_path / "twice.fuse"
    steps.write_text('rewrite name "dead_code"\nsplit %y.i0 by 4 -> o, t\n')
    run = only(fusebox("run", small, "--on", "host", "--steps", steps, "--record", bundle, "--json"))
    assert run["ok"] and only(fusebox("replay", bundle, "--json"))["identical"]
    steps.write_text('split %y.i0 by 4 -> o, t\nrewrite name "dead_code"\n')
    run = fusebox("run", small, "--on", "host", "--steps", steps, "--json")
    assert run.returncode == 2 and only(run)["error"]["code"] == "E0302"
    listed = fusebox("run", "--help").stdout
    assert "identity_moves" in listed and "limit" in listed
