"""`show --level kernel` shows the bank conflicts of each access to shared memory: a transpose with and without its
swizzle."""

import re

import pytest

from support import PROGRAMS, fusebox

TRANSPOSE = PROGRAMS / "swizzled_transpose.fir"
NOTE = re.compile(r"// (?:no bank conflict|bank conflicts: \d+-way, \d+ wavefronts for \d+|never reached)$")


def output(*arguments):
    run = fusebox(*arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def notes(path, *more):
    """(op, comment) of each line of the kernel that accesses shared memory."""
    text = output("show", path, "--level", "kernel", *more)
    found = re.findall(r"^ *(?:%\w+ = )?(load|store|copy) .*?  // ((?:no )?bank conflict.*)$", text, re.MULTILINE)
    assert found
    return found


@pytest.fixture
def plain_transpose(tmp_path):
    """The same tile without its swizzle: writes rows and reads columns."""
    text = TRANSPOSE.read_text()
    plain = re.sub(r"  swizzle .*\n", "", text).replace("%xs.row", "%xs.mi").replace("%xs.bank", "%xs.ni")
    assert plain != text
    path = tmp_path / "plain.fir"
    path.write_text(plain)
    return path


def test_a_swizzle_takes_the_conflicts_of_a_transpose(plain_transpose):
    # 67 by 101 in tiles of 32 by 32: a row of m has tiles of 32, 32 and 3; of n 32, 32, 32 and 5. A warp reads 32 (or 3)
    # elements of a column, for each of 101 columns: (32 + 32 + 3) · 101 wavefronts where 3 · 101 would do.
    columns = f"bank conflicts: 32-way, {67 * 101} wavefronts for {3 * 101}"
    assert notes(plain_transpose) == [("store", "no bank conflict"), ("load", columns)]
    assert notes(TRANSPOSE) == [("store", "no bank conflict"), ("load", "no bank conflict")]


def test_they_stand_beside_the_reasons_of_checks(plain_transpose):
    assert notes(plain_transpose, "--why") == notes(plain_transpose)


def test_a_bundle_is_counted_on_its_own_inputs(plain_transpose, tmp_path):
    bundle = tmp_path / "it.fuse"
    output("run", plain_transpose, "--on", "host", "--input", "x=f32[32, 64] normal seed 1", "--record", bundle)
    assert notes(bundle) == [("store", "no bank conflict"), ("load", "bank conflicts: 32-way, 2048 wavefronts for 64")]


def test_what_keeps_them_from_being_counted_is_said(plain_transpose):
    text = plain_transpose.read_text()
    plain_transpose.write_text(re.sub(r"inputs @\w+ host \{.*?\n\}\n", "", text, flags=re.DOTALL))
    text = output("show", plain_transpose, "--level", "kernel")
    assert "//   bank conflicts are not counted: " in text and "wavefronts" not in text


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.fir")), ids=lambda p: p.stem)
def test_the_text_stays_a_program(program, tmp_path):
    path = tmp_path / "kernels.fir"
    text = output("show", program, "--level", "kernel")
    path.write_text(text)
    output("verify", path)
    shared = set(re.findall(r"(%\w+) = allocate .* shared$", text, re.MULTILINE))
    for line in text.splitlines():
        touches = re.search(r"\b(?:load|store|copy)\b (.*?)(?://|$)", line)
        if touches and shared & set(re.findall(r"%\w+", touches[1])):
            assert NOTE.search(line), line
