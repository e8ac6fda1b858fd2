"""`fusebox explain`: why two domains are the same or not, under each definition."""

import json

import pytest

from support import PROGRAMS, fusebox

SWIZZLED = PROGRAMS / "swizzled_copy_1d.fir"
GRAPHS = ["exact", "almost-exact", "broadcast", "permissive", "loop"]

SHARDED = """fusion @sharded {
  %d = size
  %h = mul %d, 4
  %r = mul %h, 6
  %x = input f32[%r] contiguous
  %y = reshape %x to [%h, 6]
  %u = exp %y
  %z = exp %x
  output %u
  output %z
}
steps @sharded {
  split %u.i0 by 4 outer -> p, q
  split %z.i0 by 4 outer -> p, q
}
"""

ILLEGAL = """fusion @illegal {
  %m, %k, %n = size
  %x = input f32[%n] contiguous
  %p = input f32[%m, %n] contiguous
  %q = input f32[%k, %n] contiguous
  %b = broadcast %x mask [1, 0]
  %y = add %b, %p
  %z = add %b, %q
  output %y
  output %z
}
steps @illegal {
  inline_at %b.i0
}
"""


def explain(*arguments):
    return fusebox("explain", *arguments)


def answer(*arguments):
    run = explain(*arguments, "--json")
    assert run.returncode == 0, run.stderr
    (line,) = run.stdout.splitlines()
    return json.loads(line)


def program(tmp_path, text):
    path = tmp_path / "it.fir"
    path.write_text(text)
    return path


def test_the_holes_of_the_swizzled_copy():
    result = answer(SWIZZLED, "%y.f", "%y.b")
    assert result["program"] == "swizzled_copy_1d" and result["a"] == "%y.f"
    assert result["elements"]["proved"] is True and result["elements"]["difference"] is None
    assert any(r["name"] == "split-of-split" for r in result["elements"]["reasons"])
    nest = result["nest"]
    assert nest["comparable"] is True and nest["proved"] is False and nest["of"] == "%y"
    assert nest["difference"]["a"] != nest["difference"]["b"]
    assert list(result["graphs"]) == GRAPHS
    assert not any(graph["one"] for graph in result["graphs"].values())
    assert "%y.f and %y.b" in result["graphs"]["almost-exact"]["because"][0]


def test_text_answers_every_meaning():
    run = explain(SWIZZLED, "y.f", "%y.b")
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    assert lines[0] == "%y.f and %y.b in @swizzled_copy_1d"
    heads = [line.split("  ")[0] for line in lines[1:] if not line.startswith(" ")]
    assert heads == ["in a nest", "at elements", *GRAPHS]
    assert any(line.strip().startswith("at %y.t = ") for line in lines)


def test_an_almost_exact_pair_comes_with_its_proof():
    result = answer(SWIZZLED, "%y.k", "%y.f")
    assert result["graphs"]["exact"]["one"] is False
    almost = result["graphs"]["almost-exact"]
    assert almost["one"] is True and "at every loop point" in almost["because"][0]


def test_shards_of_a_matrix_and_of_its_elements(tmp_path):
    path = program(tmp_path, SHARDED)
    result = answer(path, "%u.p", "%z.p")
    assert result["elements"]["proved"] is True
    assert "reshape" in [r["name"] for r in result["elements"]["reasons"]]
    steps = tmp_path / "steps.txt"
    steps.write_text("split %u.i0 by 5 outer -> p, q\nsplit %z.i0 by 5 outer -> p, q\n")
    other = answer(path, "%u.p", "%z.p", "--steps", steps)
    difference = other["elements"]["difference"]
    assert other["elements"]["proved"] is False
    # At the named sizes and element, the two differ.
    d, x = difference["sizes"]["%d"], difference["point"]["%x.i0"]
    assert difference["a"] == x // 6 // -(-4 * d // 5) and difference["b"] == x // -(-24 * d // 5)
    assert difference["a"] != difference["b"]


def test_a_schedule_that_cannot_be_inlined_is_explained(tmp_path):
    result = answer(program(tmp_path, ILLEGAL), "%y.i1", "%b.i1")
    assert result["note"].startswith("`inline_at %b.i0` is left out: E0310 %b.i0: ")
    assert result["elements"]["proved"] is True


def test_a_bundle_is_explained_as_it_was_recorded(tmp_path):
    bundle = tmp_path / "it.fuse"
    recorded = fusebox("run", SWIZZLED, "--on", "host", "--record", bundle)
    assert recorded.returncode == 0, recorded.stderr
    from_bundle, from_text = answer(bundle, "%y.f", "%y.b"), answer(SWIZZLED, "%y.f", "%y.b")
    assert from_bundle["elements"] == from_text["elements"]
    assert {k: v["one"] for k, v in from_bundle["graphs"].items()} == {k: v["one"] for k, v in from_text["graphs"].items()}


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.fir")), ids=lambda p: p.stem)
def test_each_program_of_the_corpus(path):
    """A domain equals itself under every definition, and an unknown name is an error."""
    run = explain(path, "%no_such.i0", "%no_such.i0", "--json")
    assert run.returncode == 2 and json.loads(run.stdout)["error"]["code"] == "E0301"
    text = path.read_text()
    name = next(line.split("%")[1].split()[0] for line in text.splitlines() if line.strip().startswith("output %"))
    result = answer(path, f"%{name}.i0", f"%{name}.i0")
    assert result["nest"]["proved"] and result["elements"]["proved"]
    assert all(graph["one"] for graph in result["graphs"].values())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("%y.nothing", "%y.b"), "E0301"),
        (("%y.f", "%z.i0"), "E0301"),
        (("y", "%y.b"), "E0440"),
        (("%y.", "%y.b"), "E0440"),
        (("%y.f",), "E0440"),
    ],
)
def test_refusals(arguments, code):
    run = explain(SWIZZLED, *arguments)
    assert run.returncode == 2
    assert run.stderr.startswith(f"fusebox: {code}")


QUOTED = """fusion @q {
  %"x y" = input f32[6] contiguous
  %"y.z" = neg %"x y"
  output %"y.z"
}
steps @q {
  split %"y.z".i0 by 2 -> b, c
}
"""


def test_domains_may_be_written_as_steps_write_them(tmp_path):
    path = program(tmp_path, QUOTED)
    both = answer(path, '%"x y".i0', '%"y.z".i0')
    assert both["nest"]["proved"] and both == answer(path, "%x y.i0", "%y.z.i0")
    assert (both["a"], both["b"]) == ('%"x y".i0', '%"y.z".i0')
    assert answer(path, '%"y.z".b', '%"y.z".c')["a"] == '%"y.z".b'
    unknown = explain(path, '%"x z".i0', '%"y.z".i0').stderr
    assert unknown.startswith('fusebox: E0301 %"x z".i0: ') and "--graph exact" in unknown
    shown = fusebox("show", path, "--graph", "exact").stdout
    assert "x y" in shown and "y.z" in shown


def test_the_unknown_domain_lists_what_there_is():
    run = explain(SWIZZLED, "%y.nothing", "%y.b")
    assert "it has i0, tile, a" in run.stderr


def test_help_has_examples():
    run = explain("--help")
    assert run.returncode == 0 and "fusebox explain corpus/programs/" in run.stdout


TWO_ROWS = """fusion @two {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %s = sum %x over [1]
  %t = segment_set %s
  %u = neg %t
  output %u
}
inputs @two host {
  %x = f32[3, 5] normal seed 1
}
inputs @two gpu {
  %x = f32[1000, 500] normal seed 1
}
"""


def test_plan_tells_segments_bytes_and_why_they_are_apart(tmp_path):
    path = tmp_path / "two.fir"
    path.write_text(TWO_ROWS)
    found = json.loads(fusebox("explain", path, "--plan", "--json").stdout)
    assert found["program"] == "two"
    first, last = found["segments"][0], found["segments"][-1]
    assert {"name": "x", "bytes": 60} in first["reads"]
    assert last["writes"] == [{"name": "u", "bytes": 12}]
    # A segment_set stays a border: what it makes crosses.
    crossings = [m for m in found["merges"] if {"name": "t", "bytes": 12} in m["crossing"]]
    assert len(crossings) == 1 and not crossings[0]["possible"]
    gpu = json.loads(fusebox("explain", path, "--plan", "--json", "--where", "gpu").stdout)
    assert {"name": "x", "bytes": 2000000} in gpu["segments"][0]["reads"]


def test_plan_as_text_and_page(tmp_path):
    path = tmp_path / "two.fir"
    path.write_text(TWO_ROWS)
    text = fusebox("explain", path, "--plan").stdout
    assert text.startswith("@two: ") and "are apart at %t 12 B" in text
    page = fusebox("explain", path, "--plan", "--format", "html").stdout
    assert page.startswith("<!doctype html>") and "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_plan_refuses_domains_and_needs_none(tmp_path):
    path = tmp_path / "two.fir"
    path.write_text(TWO_ROWS)
    for arguments, word in ((("%u.i0", "%x.i0", "--plan"), "--plan explains"), ((), "--plan"), (("--plan", "--device", "c64"), "c64")):
        refused = fusebox("explain", path, *arguments)
        assert refused.returncode == 2 and word in refused.stderr
