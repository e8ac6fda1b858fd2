"""`show --level scheduled` and `show --graph` of a refused schedule: the result of the steps, with the error at the place it names."""

import json
import re

import pytest
from support import fusebox

PROGRAM = """fusion @f {{
  %n = size
  %x = input f32[%n] contiguous
  %a = exp %x
  %y = exp %a
  output %y
}}
steps @f {{
{steps}
}}
inputs @f host {{
  %x = f32[7] normal seed 1
}}
"""
OF_ANOTHER_THREAD = ["split %a.i0 by 4 -> o, t", "parallelize %a.t on block.x"]


@pytest.fixture
def program(tmp_path):
    def write(steps):
        path = tmp_path / "refused.fir"
        path.write_text(PROGRAM.format(steps="\n".join("  " + s for s in steps)))
        return path

    return write


def without_comments(text):
    return re.sub(r" *//.*", "", text)


def test_the_error_stands_beside_the_loop_that_it_names(program):
    shown = fusebox("show", program(OF_ANOTHER_THREAD), "--level", "scheduled")
    assert shown.returncode == 2 and "E0312 %a.t" in shown.stderr
    beside = [line for line in shown.stdout.splitlines() if "//" in line]
    assert len(beside) == 1
    assert beside[0].startswith("    loop [o, t block.x]  // E0312 at %a.t: consumer %y reads")


def test_a_name_with_an_end_of_line_leaves_the_error_on_one_line(tmp_path):
    path = tmp_path / "refused.fir"
    text = PROGRAM.format(steps="\n".join("  " + s for s in OF_ANOTHER_THREAD))
    path.write_text(text.replace("%a", r'%"a\nb"'))
    shown = fusebox("show", path, "--level", "scheduled")
    assert shown.returncode == 2 and "E0312" in shown.stdout
    path.write_text(shown.stdout)
    assert fusebox("verify", path).returncode == 0


def test_the_error_stands_beside_the_tensor_where_the_domain_has_no_line_of_its_own(program):
    shown = fusebox("show", program(["parallelize %a.i0 on block.x"]), "--level", "scheduled")
    assert shown.returncode == 2
    assert re.search(r"^  %a = exp %x : .*block\.x\]  // E0312 at %a\.i0: ", shown.stdout, re.MULTILINE)


def test_what_is_shown_is_the_graph_of_the_steps(program, tmp_path):
    shown = fusebox("show", program(OF_ANOTHER_THREAD), "--level", "scheduled").stdout
    path = tmp_path / "shown.fir"
    path.write_text(shown)
    parsed = fusebox("fmt", path)
    assert parsed.returncode == 0 and parsed.stdout == without_comments(shown)


def test_steps_are_shown_up_to_the_one_that_does_not_apply(program):
    path = program(["split %y.i0 by 4 -> o, t", "split %y.zz by 2 -> a, b", "parallelize %y.t on block.x"])
    shown = fusebox("show", path, "--level", "scheduled")
    assert shown.returncode == 2 and "E0301 %y.zz" in shown.stderr
    assert shown.stdout.startswith("// after 1 of 3 steps; the next is: split %y.zz by 2 -> a, b\n")
    assert "o iter, t iter = split i0 by 4 inner" in shown.stdout and "block.x" not in without_comments(shown.stdout)
    assert re.search(r"^  %y = exp %a : .*// E0301 at %y\.zz: ", shown.stdout, re.MULTILINE)


def test_an_error_that_names_nothing_of_the_program_stands_above_it(program):
    shown = fusebox("show", program(["split %z.i0 by 4 -> o, t"]), "--level", "scheduled")
    assert shown.returncode == 2
    first, second, *_ = shown.stdout.splitlines()
    assert first.startswith("// after 0 of 1 steps") and second.startswith("// E0301 at %z: ")


@pytest.mark.parametrize("name", ["%a", "%y"])
def test_of_several_kernels_the_refused_one_has_the_error(program, name):
    path = program(['assign of [%a] name "first"', 'assign of [%y] name "second"', f"parallelize {name}.i0 on mma"])
    shown = fusebox("show", path, "--level", "scheduled")
    assert shown.returncode == 2 and f"E0318 {name}.i0" in shown.stderr
    graphs = shown.stdout.split("\n\n")
    assert ["// E0318" in g for g in graphs] == [name == "%a", name == "%y"]


@pytest.mark.parametrize("name", ["%a", "%y"])
def test_of_several_kernels_those_before_the_refused_step_are_shown(program, name):
    path = program(['assign of [%a] name "first"', 'assign of [%y] name "second"', f"split {name}.zz by 2 -> o, t"])
    graphs = fusebox("show", path, "--level", "scheduled").stdout.split("\n\n")
    assert ["// E0301" in g for g in graphs] == ([True] if name == "%a" else [False, True])


def test_json_gives_the_domains_and_the_error(program):
    shown = fusebox("show", program(OF_ANOTHER_THREAD), "--level", "scheduled", "--json")
    graphs, error = (json.loads(line) for line in shown.stdout.splitlines())
    assert shown.returncode == 2 and error["error"]["code"] == "E0312" and error["error"]["place"] == "%a.t"
    assert graphs["graphs"][0]["level"] == "scheduled"


def test_a_picture_shows_the_steps_that_apply_and_why_no_more(program):
    shown = fusebox("show", program(["split %y.i0 by 4 -> o, t", "split %y.zz by 2 -> a, b"]), "--graph", "exact")
    assert shown.returncode == 0
    assert "E0301 at %y.zz" in shown.stdout and "split 4 of i0" in shown.stdout
