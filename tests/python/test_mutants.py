"""The tool for the mutation score: the places it finds, mutants that compile and make the change they show, and its reports."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from support import ROOT

sys.path.insert(0, str(ROOT / "tests/mutants"))
import campaign  # noqa: E402
import mutants  # noqa: E402
import render  # noqa: E402
import report  # noqa: E402
import tree  # noqa: E402

# The program calls each function with small numbers and prints the results.
SOURCE = r"""
#include <cstdio>
#include <vector>
#define TWICE(x) ((x) < 1 ? (x) + (x) : 2 * (x))
struct Defects { bool has(int d) const { return d == 7; } };
struct Outer { struct Inner { static int member(int x); }; };
int Outer::Inner::member(int x) { return x - 1; }
constexpr int kTable[] = {0, 1, 1};
constexpr int square(int x) { return x * x; }
static_assert(square(3) == 9 && square(1) < 2);
int with_default(int x, int by = 1) { return x; }
bool below(int a, int b) { return a < b; }
int scaled(int a, int b) {
  int sum = a;
  sum += b;
  return sum;
}
double half(double x) { return x / 4; }
bool inside(int a, int low, int high) { return low != a && a != high; }
int chosen(bool first, int a, int b) { return first ? a : b; }
int early(int a) {
  if (a > 2) return 5;
  return 6;
}
int spelled(int kind) {
  switch (kind) {
    case 1: return 10;
    default: return 1;
  }
}
int count(int n) {
  std::vector<int> all;
  for (int i = 3; i < n; ++i) all.push_back(i);
  return static_cast<int>(all.size());
}
int ratio(int a, int b) { return 10 * a + b; }
int exchanged(int a, int b) { return ratio(a, b); }
int unknown() { return 1; }
int at_run_time(int x) { return square(x); }
int broken(int x, Defects defects) {
  if (defects.has(7) && x > 100) return x + 1;
  const bool shifted = x > 200 && defects.has(7);
  if (shifted && x > 300) return shifted ? x - 1 : x;
  return TWICE(x);
}
int main() {
  std::printf("%d %d %d %d %.2f %d %d %d %d %d %d %d %d %d %d %d %d\n", below(3, 3), below(2, 3), scaled(5, 3), with_default(4), half(8.0),
              inside(4, 4, 6), inside(5, 4, 6), chosen(true, 8, 9), early(3), early(1), spelled(1), count(5), exchanged(3, 4),
              unknown(), at_run_time(3), broken(4, {}), kTable[2]);
  return 0;
}
"""
CLEAN = "0 1 8 4 2.00 0 1 8 5 6 10 2 34 1 9 8 1"

# One of each kind: the change, and the program's output with it.
CHANGES = {
    ("relational", "bool below(int a, int b) { return a [-<-]{+<=+} b; }"): "1 1 8 4 2.00 0 1 8 5 6 10 2 34 1 9 8 1",
    ("relational", "bool below(int a, int b) { return a [-<-]{+>+} b; }"): "0 0 8 4 2.00 0 1 8 5 6 10 2 34 1 9 8 1",
    ("arithmetic", "sum [-+=-]{+-=+} b;"): "0 1 2 4 2.00 0 1 8 5 6 10 2 34 1 9 8 1",
    ("arithmetic", "double half(double x) { return x [-/-]{+*+} 4; }"): "0 1 8 4 32.00 0 1 8 5 6 10 2 34 1 9 8 1",
    ("arithmetic", "int ratio(int a, int b) { return 10 * a + b[--]{+ +1+}; }"): "0 1 8 4 2.00 0 1 8 5 6 10 2 35 1 9 8 1",
    ("arithmetic", "constexpr int square(int x) { return x [-*-]{+++} x; }"): "0 1 8 4 2.00 0 1 8 5 6 10 2 34 1 6 8 1",
    ("joined", "bool inside(int a, int low, int high) { return low != a [-&&-]{+||+} a != high; }"):
        "0 1 8 4 2.00 1 1 8 5 6 10 2 34 1 9 8 1",
    ("part", "bool inside(int a, int low, int high) { return [-low != a-]{+true+} && a != high; }"):
        "0 1 8 4 2.00 1 1 8 5 6 10 2 34 1 9 8 1",
    ("condition", "int chosen(bool first, int a, int b) { return [-first-]{+!(first)+} ? a : b; }"):
        "0 1 8 4 2.00 0 1 9 5 6 10 2 34 1 9 8 1",
    ("exit", "if (a > 2) [-return 5;-]{+;+}"): "0 1 8 4 2.00 0 1 8 6 6 10 2 34 1 9 8 1",
    ("statement", "[-sum += b;-]{+;+}"): "0 1 5 4 2.00 0 1 8 5 6 10 2 34 1 9 8 1",
    ("statement", "for (int i = 3; i < n; ++i) [-all.push_back(i);-]{+;+}"): "0 1 8 4 2.00 0 1 8 5 6 10 0 34 1 9 8 1",
    ("constant", "int unknown() { return [-1-]{+0+}; }"): "0 1 8 4 2.00 0 1 8 5 6 10 2 34 0 9 8 1",
    ("arguments", "int exchanged(int a, int b) { return ratio([-a, b-]{+b, a+}); }"): "0 1 8 4 2.00 0 1 8 5 6 10 2 43 1 9 8 1",
}


@pytest.fixture(scope="module")
def cindex():
    try:
        return tree.libclang()
    except subprocess.CalledProcessError:
        pytest.skip("libclang is neither installed nor to be had")


def find(cindex, path):
    import places
    stubs = path.parent / "stubs"
    stubs.mkdir(exist_ok=True)
    unit = cindex.Index.create().parse(str(path), places.compiler_arguments(f"c++ -I{ROOT}", stubs),
                                       options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    assert not [str(d) for d in unit.diagnostics if d.severity >= d.Error]
    return places.Finder(unit, str(path), path.name, path.read_bytes()).places


@pytest.fixture(scope="module")
def found(cindex, tmp_path_factory):
    """All mutants of SOURCE, numbered."""
    path = tmp_path_factory.mktemp("mutants") / "source.cc"
    path.write_text(SOURCE)
    result = [mutant for place in find(cindex, path) for mutant in place]
    for number, mutant in enumerate(result, 1):
        mutant["id"] = number
    return result


class Program:
    """SOURCE with mutants that fit each other, compiled."""

    def __init__(self, chosen, folder):
        source, self.path = folder / "mutated.cc", folder / "mutated"
        source.write_bytes(render.render(SOURCE.encode(), chosen))
        subprocess.run(["c++", "-std=c++20", "-w", f"-I{ROOT}", source, "-o", self.path], check=True)

    def output(self, number, notes=None):
        environment = {**os.environ, "FUSEBOX_MUTANT": str(number)}
        if notes:
            environment["FUSEBOX_MUTANT_NOTES"] = str(notes)
        return subprocess.run([self.path], env=environment, capture_output=True, text=True, check=True).stdout.strip()


def together(mutants_of_a_file):
    """Groups of mutants that fit each other."""
    groups = []
    for mutant in mutants_of_a_file:
        for group in groups:
            if render.fits(mutant, group):
                group.append(mutant)
                break
        else:
            groups.append([mutant])
    return groups


def test_every_kind_compiles_and_changes_what_it_says(found, tmp_path):
    by_change = {(m["kind"], m["change"]): m for m in found}
    assert not [c for c in CHANGES if c not in by_change]
    seen = 0
    for group in together([by_change[c] for c in CHANGES]):
        program = Program(group, tmp_path)
        assert program.output(0) == CLEAN
        for mutant in group:
            notes = tmp_path / "notes"
            notes.write_bytes(bytes(2))
            assert program.output(mutant["id"], notes) == CHANGES[mutant["kind"], mutant["change"]], mutant["change"]
            assert notes.read_bytes() == b"\1\1", mutant["change"]
            seen += 1
    assert seen == len(CHANGES)


def test_all_mutants_of_a_source_stand_behind_one_build_each(found, tmp_path):
    """Nested ones too. Without an active mutant, nothing changes."""
    groups = together(found)
    assert len(found) > 40 and len(groups) < 6
    for group in groups:
        assert Program(group, tmp_path).output(0) == CLEAN


def test_a_place_notes_whether_its_value_changes(found, tmp_path):
    by_change = {m["change"]: m for m in found}
    never_other = by_change["if (a [->-]{+>=+} 2) return 5;"]
    never_reached = by_change["default: return [-1-]{+0+};"]
    program = Program([never_other, never_reached], tmp_path)
    for mutant, noted in ((never_other, b"\1\0"), (never_reached, b"\0\0")):
        notes = tmp_path / "notes"
        notes.write_bytes(bytes(2))
        assert program.output(mutant["id"], notes) == CLEAN
        assert notes.read_bytes() == noted


def test_nothing_is_mutated_that_the_compiler_evaluates_or_a_macro_writes(found):
    changed = "\n".join(m["change"] for m in found)
    for text in ("define", "TWICE([-", "kTable[] ", "static_assert", "case [-1", "by = [-1", "has([-", "x > 100", "defects.has", "x > 200", "shifted &&", "? x [-", "[-shifted"):
        assert text not in changed, text


def test_a_mutant_names_its_function(found):
    functions = {m["change"]: m["function"] for m in found}
    assert functions["int Outer::Inner::member(int x) { return x [---]{+++} 1; }"] == "Outer::Inner::member"
    assert functions["if (a > 2) [-return 5;-]{+;+}"] == "early"


def test_a_smaller_change_lies_in_a_larger_one(found):
    """`return 10 * a + b` has mutants of the product and of the sum; both fit."""
    chosen = [m for m in found if m["change"] in (
        "int ratio(int a, int b) { return 10 [-*-]{+++} a + b; }", "int ratio(int a, int b) { return 10 * a [-+-]{+-+} b; }")]
    assert len(chosen) == 2 and render.fits(chosen[0], chosen[1:])
    text = render.render(SOURCE.encode(), chosen).decode()
    line = next(x for x in text.splitlines() if x.startswith("int ratio"))
    assert line.count("fusebox_mutant::binary") == 2
    assert text.count("\n") == SOURCE.count("\n") + 2


def test_the_code_of_seeded_defects_is_left_out():
    sources = [f.relative_to(ROOT).as_posix() for f in (ROOT / "ir").rglob("defect.*")]
    assert len(sources) == 2 and all(tree.LEFT_OUT.fullmatch(name) for name in sources), sources


def test_two_changes_of_one_operator_do_not_fit(found):
    chosen = [m for m in found if m["change"].startswith("bool below(") and m["kind"] == "relational"]
    assert len(chosen) == 2 and not render.fits(chosen[0], chosen[1:])


def test_a_mutant_that_does_not_compile_is_blamed_by_its_line():
    rows = [{"id": i, "file": "ir/a.cc", "line_start": i, "line_end": i + 1} for i in (1, 5, 6)]
    messages = tree.MESSAGE.findall("/t/ir/a.cc:6:3: error: no\n/t/ir/b.cc:1:1: error: no\nninja: stopped\n")
    assert tree.blamed(messages, rows, pathlib.Path("/t")) == {5, 6}


def test_a_mutant_that_does_not_compile_is_replaced(tmp_path, monkeypatch):
    """The next one of the reserve replaces it, in the file too."""
    source = tmp_path / "copy/tree/ir/a.cc"
    source.parent.mkdir(parents=True)
    source.write_text("int a() {\n  return 0;\n}\nint b() {\n  return 1;\n}\n")
    ninja = tmp_path / "ninja"
    ninja.write_text(f"#!/bin/sh\ngrep -q 'wrong' {source} || exit 0\necho '{source}:2:10: error: no such thing'\nexit 1\n")
    ninja.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(tree.Folder, "configure", lambda self, build: None)

    def mutant(number, start, line, text):
        return {"id": number, "file": "ir/a.cc", "start": start, "end": start + 1, "line": line, "line_start": line, "line_end": line,
                "constexpr": False, "pieces": [text]}

    folder = tree.Folder(tmp_path / "copy")
    folder.data = {"count": 1, "dropped": 0, "mutants": [mutant(1, 20, 2, "wrong")], "reserve": [mutant(2, 43, 5, "right<{n}>()")]}
    folder.write(folder.mutants)
    folder.compile(1)
    again = tree.Folder(tmp_path / "copy")
    assert [m["id"] for m in again.mutants] == [2] and again.data["reserve"] == [] and again.data["dropped"] == 1
    text = source.read_text()
    assert "return 0;" in text and "return right<2>();" in text and "wrong" not in text


FINDING = {"signature": "aten differs add", "stage": "aten", "check": "differs", "place": "add", "case": 4, "seconds": 0.5, "message": "no"}


@pytest.mark.parametrize("code, lines, outcome, by", [
    (0, [{"cases": 9}], "survived", None),
    (1, [FINDING, {"cases": 9}], "killed", "aten"),
    (2, [], "killed", "command"),
    (-11, [], "killed", "command"),
    (None, [], "killed", "hang"),
    (1, ["no JSON"], "killed", "command"),
])
def test_what_a_campaign_says_of_a_mutant(code, lines, outcome, by):
    output = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    result = campaign.judge(code, output, "", 1.0)
    assert (result["outcome"], result.get("by")) == (outcome, by)


def test_a_run_goes_on_where_it_ended(tmp_path):
    """Each mutant runs once; a mutant whose line was cut off runs again."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $FUSEBOX_MUTANT >>{tmp_path}/ran\nprintf '\\001' | dd of=$FUSEBOX_MUTANT_NOTES conv=notrunc 2>&-\n"
                       f"[ $FUSEBOX_MUTANT != 2 ] || {{ echo '{json.dumps(FINDING)}'; exit 1; }}\n")
    program.chmod(0o755)
    tasks = [(n, n, 1) for n in (1, 2, 3)]
    first = campaign.Campaigns(program, tmp_path, 1, 1, 2)
    assert first.run(tasks[:2], lambda row: None)
    with open(first.path, "a", encoding="utf-8") as file:
        file.write('{"id": 3, "seed"')
    with open(first.path, "a", encoding="utf-8") as file:
        file.write("\n")
    again = campaign.Campaigns(program, tmp_path, 1, 1, 2)
    assert again.run(tasks, lambda row: None)
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2", "3"]
    results = campaign.read_results(again.path)
    assert {n: (r["outcome"], r["reached"], r["differed"]) for n, r in results.items()} == {
        1: ("survived", True, False), 2: ("killed", True, False), 3: ("survived", True, False)}


def test_a_longer_campaign_runs_survivors_again(tmp_path):
    rows = [{"id": 1, "outcome": "killed", "time": 5}, {"id": 2, "outcome": "survived", "time": 5}]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = {seconds: [campaign.Campaigns("", tmp_path, seconds, 1, 1).is_known(n) for n in (1, 2, 3)] for seconds in (5, 60)}
    assert known == {5: [True, True, False], 60: [True, False, False]}


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit):
        tree.Folder(tmp_path).copy()
    assert (tmp_path / "thesis.txt").exists()


def test_the_limit_ends_a_run(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    campaigns = campaign.Campaigns(program, tmp_path, 60, 1, 1)
    assert not campaigns.run([(1, 1, 1), (2, 2, 1)], lambda row: None, limit=1)
    assert campaign.read_results(campaigns.path) == {}


def test_the_score_leaves_out_what_is_shown_to_be_equivalent(tmp_path):
    listing = tmp_path / "equivalent.txt"
    listing.write_text("# why\nir/a.cc A::f: x [-<-]{+<=+} y\n    x is never y,\n    for it is odd\n")
    equivalent = report.read_equivalent(listing)
    assert equivalent == {("ir/a.cc", "A::f", "x [-<-]{+<=+} y"): "x is never y, for it is odd"}
    rows = [{"id": i, "file": "ir/a.cc", "line": i, "function": "A::f", "kind": "relational", "change": change}
            for i, change in ((1, "x [-<-]{+<=+} y"), (2, "a [-<-]{+<=+} b"), (3, "c [-<-]{+<=+} d"), (4, "e [-<-]{+<=+} f"))]
    survived = {"outcome": "survived", "seconds": 60, "reached": True, "differed": False}
    results = {1: survived, 2: survived, 3: {"outcome": "killed", "by": "aten", "signature": "aten differs add", "seconds": 2}}
    lines = report.report(rows, results, equivalent)
    assert lines[-1] == "killed 1 of 2 mutants, 50.0 %; 1 equivalent; 1 not run yet"
    assert "     2 ir/a.cc:2 A::f: a [-<-]{+<=+} b" in lines
    assert not any("x [-<-]" in line for line in lines)


@pytest.mark.parametrize("text", ["ir/a.cc f: no change\n    why\n", "    a reason alone\n", "ir/a.cc f: a [-<-]{+<=+} b\n"])
def test_an_equivalent_without_mutant_or_reason_is_refused(text, tmp_path):
    path = tmp_path / "equivalent.txt"
    path.write_text(text)
    with pytest.raises(ValueError):
        report.read_equivalent(path)


def test_the_list_of_equivalents_is_read():
    assert all(reason for reason in report.read_equivalent().values())


def test_arguments():
    a = mutants.parse(["--time", "2m", "ir/"])
    assert (a.time, a.folders, a.seed, a.count) == (120, ["ir"], 1, 100)
    for bad in (["--time", "soon"], ["--count", "0"], ["--run", "a", "--report", "b"]):
        with pytest.raises(SystemExit):
            mutants.parse(bad)
