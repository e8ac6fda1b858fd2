"""What the command line refuses instead of taking it for something else, and files that cannot be written."""

import os
import subprocess

import pytest

from support import FUSEBOX, fusebox, objects, only, twice, written

SCALED = """fusion @scaled {
  %n = size
  %x = input f32[%n] contiguous
  %s = input f32
  %y = mul %x, %s
  %z = add %x, %s
  output %y
  output %z
}
inputs @scaled host {
  %x = f32[5] constant value 2.0_f32
  %s = 1.0_f32
}
"""


@pytest.fixture
def small(tmp_path):
    return written(tmp_path, "// Twice a number.\n" + twice())


@pytest.fixture
def scaled(tmp_path):
    return written(tmp_path, SCALED, "scaled.fir")


def error_of(*arguments):
    run = fusebox(*arguments, "--json")
    assert run.returncode == 2, run.stdout + run.stderr
    error = objects(run)[-1]["error"]
    return error["code"], error["place"]


# -- numbers


@pytest.mark.parametrize("option", [
    "bench {} --tolerance nan", "bench {} --tolerance -nan", "bench {} --tolerance inf", "bench {} --tolerance 0.1x",
    "gate {} --timeout nan", "gate {} --timeout inf", "gate {} --timeout 0",
    "fuzz --print-case 99999999999999999999", "fuzz --print-case 18446744073709551616", "fuzz --print-case 0x10", "fuzz --print-case 1.5",
    "fuzz --runs 1 --seed 99999999999999999999", "fuzz --runs 9223372036854775808", "fuzz --runs 1 --jobs 0x2", "fuzz --runs 1 --jobs 1025",
    "cache gc --bytes 99999999999999999999", "cache gc --bytes 9223372036854775808", "cache gc --bytes -1",
    "run {} --threads 99999999999999999999", "run {} --threads 1e2", "run {} --time 1000001",
])
def test_a_number_that_does_not_fit_is_refused(small, option):
    assert error_of(*option.format(small).split())[0] == "E0440"


def test_numbers_are_decimal():
    for given, seed in ("10", 10), ("010", 10), ("8", 8), ("18446744073709551615", 2**64 - 1):
        assert only(fusebox("fuzz", "--print-case", given, "--json"))["seed"] == seed


def test_bounds_are_in_the_help():
    assert "in [1 - 1024]" in fusebox("run", "--help").stdout
    assert "in [0 - 1000]" in fusebox("bench", "--help").stdout


@pytest.mark.parametrize("value, literal", [("inf", "inf_f32"), ("-inf", "-inf_f32"), ("nan", "nan_f32"), ("1", "1.0_f32"), ("f32 inf", "inf_f32")])
def test_a_scalar_may_be_infinite_or_no_number(scaled, value, literal):
    outputs = [only(fusebox("run", scaled, "--on", "host", "--input", f"s={v}", "--json"))["outputs"] for v in (value, literal)]
    assert outputs[0] == outputs[1]
    assert error_of("run", scaled, "--on", "host", "--input", f"x={value}") == ("E0401", "%x")


# -- repeated and empty options


def test_an_output_is_named_once(scaled, tmp_path):
    one, two = tmp_path / "one.npy", tmp_path / "two.npy"
    run = ("run", scaled, "--on", "host")
    assert error_of(*run, "--output", f"z={one}", "--output", f"%z={two}") == ("E0440", "%z")
    assert error_of(*run, "--output", f"y={one}", "--output", f"z={one}") == ("E0440", str(one))
    assert not one.exists() and not two.exists()
    assert fusebox(*run, "--output", f"y={one}", "--output", f"z={two}").returncode == 0
    assert one.exists() and two.exists()
    assert fusebox(*run, "--output", "y=/dev/null", "--output", "z=/dev/null").returncode == 0


def test_an_input_is_named_once(scaled):
    run = ("run", scaled, "--on", "host")
    assert error_of(*run, "--input", "s=1", "--input", "%s=2") == ("E0440", "%s")
    assert fusebox(*run, "--input", "s=1", "--input", "x=f32[3]").returncode == 0


@pytest.mark.parametrize("option", ["run {} --record", "run {} --save-steps", "run {} --steps", "bench {} --against", "gate {} --junit",
                                    "fuzz --runs 1 --out", "cache ls --folder", "reduce {} --out"])
def test_an_empty_value_is_refused(small, option):
    code, place = error_of(*option.format(small).split(), "")
    assert code == "E0440" and place.endswith(option.split()[-1])


# -- files


def limited(folder, *arguments, kib=8, **options):
    """Runs a command that may not write a file of more than some KiB."""
    return subprocess.run(["bash", "-c", f'ulimit -f {kib}; exec "$@"', "bash", str(FUSEBOX), *map(str, arguments)],
                          capture_output=True, text=True, check=False, cwd=folder, **options)


def test_a_limit_of_the_size_of_files_is_an_error(tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    large = written(tmp_path, twice(5000))
    run = limited(folder, "run", large, "--on", "host", "--output", "y=y.npy")
    assert run.returncode == 2 and "E0431 y.npy: " in run.stderr
    assert not list(folder.iterdir())


def test_a_limit_of_the_size_of_files_fails_no_cache(small, tmp_path):
    folder = tmp_path / "cache"
    cache = {"FUSEBOX_CACHE_DIR": str(folder), "FUSEBOX_CACHE_BYTES": "", "FUSEBOX_LOG": "cache"}
    run = limited(tmp_path, "run", small, "--on", "host", kib=1, env={**os.environ, **cache})
    assert run.returncode == 0 and "cache: miss" in run.stderr
    assert not list(folder.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["cache", "ls", "--help"]])
def test_help_on_a_full_disk(words):
    with open("/dev/full", "w", encoding="ascii") as full:
        run = subprocess.run([str(FUSEBOX), *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 2 and "E0431" in run.stderr
    shown = fusebox(*words)
    assert shown.returncode == 0 and shown.stdout.endswith("\n") and not shown.stderr


# -- fmt


HEAD = "// One.\n\n// Two.\n"


def test_fmt_reads_a_pipe_once():
    text = HEAD + "\n" + twice()
    run = fusebox("fmt", "/dev/stdin", input=text)
    assert run.returncode == 0 and run.stdout.startswith(HEAD + "fusion @twice")


def test_fmt_of_lines_with_carriage_returns(tmp_path):
    path = tmp_path / "crlf.fir"
    path.write_bytes((HEAD + "\n" + twice()).replace("\n", "\r\n").encode())
    run = subprocess.run([str(FUSEBOX), "fmt", str(path)], capture_output=True, check=False)
    assert run.returncode == 0 and b"\r" not in run.stdout and run.stdout.startswith((HEAD + "fusion @twice").encode())
