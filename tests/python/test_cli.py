"""The command line: each command, each class of error, and identical replays of bundles in other processes."""

import json
import os
import resource
import struct
import subprocess

import pytest

from support import FUSEBOX, HAS_ATEN, PROGRAMS, fusebox, objects, only, twice, written

FILES = sorted(PROGRAMS.glob("*.fir"))
SILU = PROGRAMS / "silu_mul_bias.fir"
BATCH_NORM = PROGRAMS / "welford_batch_norm.fir"

needs_aten = pytest.mark.skipif(not HAS_ATEN, reason="built without ATen")

SMALL = "// Twice a number.\n" + twice()

ILLEGAL_STEPS = """split %y.i0 by 4 -> o, t
split %y.missing by 2 -> a, b
"""


@pytest.fixture
def small(tmp_path):
    return written(tmp_path, SMALL)


@pytest.fixture
def bundle(small, tmp_path):
    path = tmp_path / "twice.fuse"
    assert fusebox("run", small, "--on", "host", "--record", path).returncode == 0
    return path


# -- run


@needs_aten
@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_a_program_agrees_with_aten_and_replays(program, tmp_path):
    path = tmp_path / "it.fuse"
    ran = fusebox("run", program, "--on", "host", "--check", "--record", path, "--json")
    assert ran.returncode == 0, ran.stderr
    result = only(ran)
    assert result["ok"] is True and result["executor"] == "host" and result["kernels"] >= 1
    assert {"fusion", "concretized", "segments", "scheduled", "kernel", "host", "source", "outputs"} <= set(result["stages"])
    for output in result["outputs"]:
        assert {"name", "dtype", "shape", "strides", "digest", "max_error", "bound"} <= set(output)
    for start in "fusion", "scheduled", "kernel":
        replayed = fusebox("replay", path, "--from", start, "--json")
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
        again = only(replayed)
        assert again["identical"] is True and again["first_difference"] is None and again["not_comparable"] == []
        assert set(again["stages"].values()) == {"identical"}


def test_digests_depend_neither_on_threads_nor_on_the_process():
    seen = {fusebox("run", BATCH_NORM, "--on", "host", "--threads", threads, "--json").stdout for threads in (1, 2, 3, 5, 8) for _ in range(2)}
    assert len(seen) == 1


@needs_aten
def test_precision_is_recorded(tmp_path):
    bundle = tmp_path / "fast.fuse"
    exact, fast = (only(fusebox("run", SILU, "--on", "host", "--json", *more))
                   for more in ([], ["--precision", "fast", "--check", "--record", bundle]))
    # The host executor computes a fast op as an exact one, from another kernel.
    assert fast["ok"] and exact["outputs"][0]["digest"] == fast["outputs"][0]["digest"]
    assert exact["stages"]["fusion"] == fast["stages"]["fusion"] and exact["stages"]["kernel"] != fast["stages"]["kernel"]
    assert fusebox("replay", bundle).returncode == 0
    assert "fast::" in fusebox("show", SILU, "--precision", "fast", "--level", "cuda").stdout
    assert "fast::" in fusebox("show", bundle, "--level", "cuda").stdout
    assert "fast::" not in fusebox("show", bundle, "--precision", "exact", "--level", "cuda").stdout
    assert "fast::" in fusebox("show", SILU, "--precision", "fast", "--unfused", "--level", "cuda").stdout


def test_unfused_gives_more_kernels_and_the_same_outputs():
    fused, unfused = (only(fusebox("run", SILU, "--on", "host", "--json", *more)) for more in ([], ["--unfused"]))
    assert fused["kernels"] == 1 < unfused["kernels"]
    assert fused["stages"]["fusion"] == unfused["stages"]["fusion"]
    assert fused["stages"]["kernel"] != unfused["stages"]["kernel"]


@needs_aten
def test_aten_runs_a_program():
    result = only(fusebox("run", SILU, "--on", "aten", "--check", "--json"))
    assert result["ok"] is True and result["executor"] == "aten" and result["kernels"] == 0


@needs_aten
def test_a_stage_of_a_reduction_has_no_reference(tmp_path):
    program = written(tmp_path, """scheduled @f {
  %x = input f32[i0 iter 5, i1 iter 16] contiguous
  %p = sum %x over [1] : f32[i0 iter 5, o, t] {
    root [i0, i1 reduce 16]
    o iter, t reduce = split i1 by 4 inner
  }
  output %p
}
inputs @f host {
  %x = f32[5, 16] normal seed 1
}
""")
    assert fusebox("run", program, "--on", "host").returncode == 0
    refused = fusebox("run", program, "--on", "host", "--check")
    assert refused.returncode == 2 and "E0212 %p: ATen has no op for a stage of a reduction" in refused.stderr


def test_a_chain_of_scalars_needs_no_stack(tmp_path):
    chain = "".join(f"  %s{i + 1} = add %s{i}, {i % 7} : index\n" for i in range(4000))
    program = written(tmp_path, f"""fusion @f {{
  %s0 = size
  %x = input f32[%s0] contiguous
{chain}  %c = cast %s4000 as f32
  %y = mul %x, %c
  output %y
}}
inputs @f host {{
  %x = f32[3] constant 1.0 1.0
}}
""")
    small_stack = lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 19, 1 << 19))
    assert fusebox("run", program, "--on", "host", "--no-cache", preexec_fn=small_stack).returncode == 0


def test_steps_of_a_file(small, tmp_path):
    steps = tmp_path / "steps.txt"
    steps.write_text("split %y.i0 by 4 -> o, t\nparallelize %y.o grid.x\nparallelize %y.t block.x\n")
    plain = only(fusebox("run", small, "--on", "host", "--json"))
    result = only(fusebox("run", small, "--on", "host", "--steps", steps, "--json"))
    assert result["ok"] and result["outputs"] == plain["outputs"]
    assert result["stages"]["kernel"] != plain["stages"]["kernel"]


def npy_floats(path):
    data = path.read_bytes()
    assert data[:6] == b"\x93NUMPY"
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:]))


def test_outputs_and_inputs_as_npy(small, tmp_path):
    first, second = tmp_path / "y.npy", tmp_path / "z.npy"
    assert fusebox("run", small, "--on", "host", "--input", "x=f32[3] constant value 1.5_f32", "--output", f"y={first}").returncode == 0
    assert npy_floats(first) == [3.0, 3.0, 3.0]
    assert fusebox("run", small, "--on", "host", "--input", f"x={first}", "--output", f"%y={second}").returncode == 0
    assert npy_floats(second) == [6.0, 6.0, 6.0]


def test_an_output_is_also_called_by_the_input_that_it_overwrites(tmp_path):
    by_input, by_output = tmp_path / "a.npy", tmp_path / "b.npy"
    result = only(fusebox("run", BATCH_NORM, "--on", "host", "--output", f"rmean={by_input}", "--json"))
    name = next(o["name"] for o in result["outputs"] if o.get("overwrites") == "rmean")
    assert fusebox("run", BATCH_NORM, "--on", "host", "--output", f"{name}={by_output}").returncode == 0
    assert by_input.read_bytes() == by_output.read_bytes()


def test_json_may_stand_anywhere(small):
    assert fusebox("--json", "run", small, "--on", "host").stdout == fusebox("run", small, "--on", "host", "--json").stdout


# -- replay


def test_exact_inputs_travel_in_a_bundle(small, tmp_path):
    values, path = tmp_path / "x.npy", tmp_path / "b.fuse"
    fusebox("run", small, "--on", "host", "--output", f"y={values}")
    assert fusebox("run", small, "--on", "host", "--input", f"x={values}", "--record", path).returncode == 0
    values.unlink()
    assert only(fusebox("replay", path, "--json"))["identical"] is True
    assert fusebox("run", path, "--on", "host").returncode == 0


def test_in_place_inputs_are_kept_from_before_the_run(tmp_path):
    path = tmp_path / "b.fuse"
    assert fusebox("run", BATCH_NORM, "--on", "host", "--record", path).returncode == 0
    for threads in 1, 3:
        assert fusebox("replay", path, "--threads", threads).returncode == 0


def test_the_first_stage_that_differs_is_named_and_shown(small, bundle, tmp_path):
    data = bundle.read_bytes()
    digest = bytes.fromhex(only(fusebox("run", small, "--on", "host", "--json"))["stages"]["kernel"])
    for order in (digest[::-1], digest[7::-1] + digest[:7:-1], digest):
        if order in data:
            break
    other = tmp_path / "other.fuse"
    other.write_bytes(data.replace(order, bytes(16)))
    run = fusebox("replay", other, "--json")
    assert run.returncode == 1
    result = only(run)
    assert result["identical"] is False and result["first_difference"] == "kernel" and result["difference"]
    assert "differs at kernel" in fusebox("replay", other).stdout


def test_a_recorded_failure_must_happen_again(small, tmp_path):
    steps, path = tmp_path / "steps.txt", tmp_path / "failed.fuse"
    steps.write_text(ILLEGAL_STEPS)
    run = fusebox("run", small, "--on", "host", "--steps", steps, "--record", path, "--json")
    assert run.returncode == 2 and only(run)["error"]["code"] == "E0301"
    replayed = fusebox("replay", path, "--json")
    assert replayed.returncode == 0 and only(replayed)["stages"]["outcome"] == "identical"
    assert "E0301" in fusebox("show", path).stdout


@needs_aten
def test_another_executor_is_not_comparable(bundle):
    result = only(fusebox("replay", bundle, "--on", "aten", "--json"))
    assert result["identical"] is True and "outputs" in result["not_comparable"] and "kernel" in result["not_comparable"]
    assert result["stages"]["fusion"] == "identical"


def test_code_of_a_bundle_needs_trust(bundle):
    run = fusebox("replay", bundle, "--from", "source", "--json")
    assert run.returncode == 2 and only(run)["error"]["code"] == "E0441"
    run = fusebox("replay", bundle, "--from", "source", "--trust-artifacts", "--on", "host", "--json")
    assert run.returncode == 2 and only(run)["error"]["code"] == "E0440"


def test_several_bundles_are_all_replayed(bundle, small):
    run = fusebox("replay", bundle, small, bundle, "--json")
    assert run.returncode == 2
    assert [list(o)[0] for o in objects(run)] == ["bundle", "error", "bundle"]


# -- show, verify, fmt, diff, convert


@pytest.mark.parametrize("level, word", [("math", "fusion @"), ("scheduled", "grid.x"), ("plan", "plan @"), ("kernel", "kernel @"), ("cuda", "__global__"), ("host", "launch ")])
def test_show_has_every_level(level, word, tmp_path):
    path = tmp_path / "b.fuse"
    fusebox("run", SILU, "--on", "host", "--record", path)
    for file in SILU, path:
        run = fusebox("show", file, "--level", level)
        assert run.returncode == 0 and word in run.stdout, run.stderr
        as_json = fusebox("show", file, "--level", level, "--format", "json")
        assert as_json.returncode == 0 and objects(as_json)
    assert fusebox("show", SILU, "--level", level).stdout == fusebox("show", path, "--level", level).stdout


def test_show_maps_names_back():
    text = fusebox("show", SILU, "--level", "cuda").stdout
    assert "//   t0 is %x\n" in text and "//   t3 is %out\n" in text


ODD_NAMES = r"""fusion @"f\nint x" {
  %"n\nfoo bar" = size
  %"x\nzzz\\" = input f32[%"n\nfoo bar"] contiguous
  %"y\\" = neg %"x\nzzz\\"
  output %"y\\"
}
inputs @"f\nint x" host {
  %"x\nzzz\\" = f32[7] constant 1.0 1.0
}
"""


def test_comments_stay_on_their_lines_whatever_names_hold(tmp_path):
    program = written(tmp_path, ODD_NAMES)
    for more in [], ["--why"]:
        kernel = fusebox("show", program, "--level", "kernel", *more)
        assert kernel.returncode == 0
        assert fusebox("verify", written(tmp_path, kernel.stdout, "kernel.fir")).returncode == 0
    cuda = fusebox("show", program, "--level", "cuda").stdout
    assert r'//   t0 is %"x\nzzz\\"' + "\n" in cuda
    lines = cuda.splitlines()
    assert not any(line.startswith(("int x", "zzz", "foo")) for line in lines)
    assert not any(line.lstrip().startswith("//") and line.endswith("\\") for line in lines)


@pytest.mark.parametrize("level", ["math", "scheduled", "kernel", "host"])
def test_show_draws(level):
    run = fusebox("show", SILU, "--level", level, "--format", "dot")
    assert run.returncode == 0 and run.stdout.startswith("digraph")


def test_show_of_a_bundle_says_how_it_was_recorded(bundle):
    text = fusebox("show", bundle).stdout
    assert "run on host" in text and "digest outputs" in text and "input %x" in text and "fusion @twice" in text


def test_recorded_texts_of_several_lines_stay_comments(bundle, tmp_path):
    data = bundle.read_bytes()
    other = tmp_path / "lines.fuse"
    at = data.index(b"cuda_options")
    assert at > 0
    other.write_bytes(data[:at] + b"cuda\noptions" + data[at + 12:])
    text = written(tmp_path, fusebox("show", other).stdout, "shown.fir")
    assert fusebox("fmt", text).returncode == 0


@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_fmt_is_a_fixed_point(program, tmp_path):
    once = fusebox("fmt", program).stdout
    copy = tmp_path / "copy.fir"
    copy.write_text(once)
    assert once.startswith("//") and fusebox("fmt", copy).stdout == once
    assert fusebox("diff", program, copy).returncode == 0


def test_verify_says_which_file_is_wrong(small, tmp_path):
    bad = tmp_path / "bad.fir"
    bad.write_text(SMALL.replace("output %y", "output %z"))
    run = fusebox("verify", small, bad, "--json")
    assert run.returncode == 2
    good, wrong = objects(run)
    assert good["ok"] is True and wrong["ok"] is False
    assert wrong["error"]["code"] == "E0102" and wrong["error"]["place"].startswith(f"{bad}:6:")


def test_diff_sees_programs_not_names(small, tmp_path):
    renamed, changed = tmp_path / "renamed.fir", tmp_path / "changed.fir"
    renamed.write_text(SMALL.replace("%y", "%sum").replace("%x", "%a"))
    changed.write_text(SMALL.replace("add", "mul"))
    assert fusebox("diff", small, renamed).returncode == 0
    run = fusebox("diff", small, changed)
    assert run.returncode == 1 and "- " in run.stdout and "mul" in run.stdout
    assert only(fusebox("diff", small, changed, "--json"))["first_difference"] == "fusion"


def test_diff_of_bundles_names_the_stage(small, bundle, tmp_path):
    other = tmp_path / "other.fuse"
    fusebox("run", small, "--on", "host", "--input", "x=f32[5] normal seed 2", "--record", other)
    assert fusebox("diff", bundle, bundle).returncode == 0
    run = fusebox("diff", bundle, other, "--json")
    assert run.returncode == 1 and only(run)["first_difference"] == "outputs"


TWO = """fusion @two {{
  %{a} = input f32[4] contiguous
  %{b} = input f32[4] contiguous
  %z = sub %{a}, %{b}
  output %z
}}
inputs @two host {{
  %{first} = f32[4] {of_first}
  %{second} = f32[4] {of_second}
}}
"""


def test_diff_takes_default_inputs_by_their_places(tmp_path):
    def program(name, a, b, first, of_first, second, of_second):
        return written(tmp_path, TWO.format(a=a, b=b, first=first, of_first=of_first, second=second, of_second=of_second), name)
    one, other = "normal seed 1", "normal seed 2"
    base = program("base.fir", "a", "b", "a", one, "b", other)
    assert fusebox("diff", base, program("order.fir", "a", "b", "b", other, "a", one)).returncode == 0
    assert fusebox("diff", base, program("names.fir", "b", "a", "b", one, "a", other)).returncode == 0
    assert fusebox("diff", base, program("exchanged.fir", "a", "b", "b", one, "a", other)).returncode == 1


def test_diff_of_bundles_sees_inputs_whose_outputs_are_one(tmp_path):
    path = written(tmp_path, """fusion @f {
  %a = input f32[4] contiguous
  %z = mul %a, 0.0_f32
  %c = ge %z, 0.0_f32
  output %c
}
""")
    bundles = [tmp_path / "1.fuse", tmp_path / "2.fuse"]
    for value, bundle in enumerate(bundles):
        run = fusebox("run", path, "--on", "host", "--input", f"a=f32[4] constant value {value}.0_f32", "--record", bundle)
        assert run.returncode == 0, run.stderr
    report = only(fusebox("diff", *bundles, "--json"))
    assert report["first_difference"] == "inputs" and "constant" in report["difference"]
    assert fusebox("diff", bundles[0], bundles[0]).returncode == 0


def test_convert_there_and_back(small, tmp_path):
    there, back = tmp_path / "there.fuse", tmp_path / "back.fir"
    assert fusebox("convert", small, there).returncode == 0
    assert fusebox("convert", there, back).returncode == 0
    assert fusebox("diff", small, back).returncode == 0
    assert fusebox("run", there, "--on", "host").returncode == 0


# -- errors


def error_of(*arguments):
    plain, as_json = fusebox(*arguments), fusebox(*arguments, "--json")
    assert plain.returncode == as_json.returncode == 2, plain.stderr + as_json.stdout
    error = objects(as_json)[-1]["error"]
    assert set(error) == {"code", "message", "place"}
    assert f"fusebox: {error['code']}{' ' if error['place'] else ''}{error['place']}: " in plain.stderr and error["message"] in plain.stderr
    return error["code"], error["place"]


@pytest.mark.parametrize("given, code, place", [
    ("x=f64[5]", "E0401", "%x"),
    ("x=f32[5, 2]", "E0401", "%x"),
    ("x=f32[5] strides [2]", "E0401", "%x"),
    ("x=f32[five]", "E0403", "%x"),
    ("x=missing.npy", "E0430", None),
    ("z=f32[5]", "E0102", "%z"),
])
def test_wrong_inputs(small, given, code, place):
    got, where = error_of("run", small, "--on", "host", "--input", given)
    assert got == code
    if place is not None:
        assert where.startswith(place)


def test_a_missing_input(tmp_path):
    path = tmp_path / "bare.fir"
    path.write_text(SMALL.split("inputs")[0])
    assert error_of("run", path, "--on", "host") == ("E0402", "%x")


def test_inputs_that_do_not_fit_together():
    code, _ = error_of("run", SILU, "--on", "host", "--input", "b=bf16[36] normal seed 3")
    assert code == "E0407"


KERNEL = """kernel @k index 32 {
  %x = input f32[?] global
  %n = input index
  for 0, %n, 1 { index %i
    store %x at %i, 0.0_f32
  }
}
inputs @k host {
  %x = f32[4] normal
  %n = 4
}
"""


@pytest.mark.parametrize("command", ["run {} --on host", "show {} --level plan", "show {} --level cuda", "explain {} --plan", "explain {} %x.i0 %y.i0"])
@pytest.mark.parametrize("kind", ["fir", "fuse"])
def test_a_kernel_is_no_fusion(command, kind, tmp_path):
    path = written(tmp_path, KERNEL)
    if kind == "fuse":
        assert fusebox("convert", path, tmp_path / "k.fuse").returncode == 0
        path = tmp_path / "k.fuse"
    assert error_of(*command.format(path).split()) == ("E0208", "@k")


@pytest.mark.parametrize("arguments", [[], ["walk"], ["run"], ["run", "f.fir", "--on", "abacus"], ["replay", "f.fuse", "--from", "nowhere"],
                                       ["show", "f.fir", "--level", "moon"], ["run", "f.fir", "--threads", "0"],
                                       ["run", "f.fir", "--steps", "s.txt", "--unfused"], ["run", "f.fir", "--steps", "s.txt", "--plan", "automatic"],
                                       ["run", "f.fir", "--plan", "automatic", "--unfused"],
                                       ["explain", "f.fir", "%y.i0", "%x.i0", "--format", "html"], ["explain", "f.fir", "%y.i0", "%x.i0", "--device", "h100"]])
def test_usage(arguments):
    assert error_of(*arguments)[0] == "E0440"


def test_an_unknown_output(small):
    assert error_of("run", small, "--on", "host", "--output", "q=q.npy") == ("E0102", "%q")


def test_a_file_that_is_not_there():
    assert error_of("run", "nothing.fir")[0] == "E0430"


def test_a_text_error_has_file_line_and_column(tmp_path):
    path = tmp_path / "f.fir"
    path.write_text("fusion @f {\n  what\n}\n")
    code, place = error_of("verify", path)
    assert code == "E0201" and place.startswith(f"{path}:2:")


def test_damaged_and_foreign_bundles(bundle, small, tmp_path):
    damaged = tmp_path / "damaged.fuse"
    damaged.write_bytes(bundle.read_bytes()[:200])
    assert error_of("replay", damaged)[0] in ("E0111", "E0112")
    damaged.write_bytes(b"something else altogether")
    assert error_of("replay", damaged)[0] == "E0110"
    assert error_of("replay", small)[0] == "E0110"


def test_a_bundle_from_the_future(bundle, tmp_path):
    """The header's feature bits are eight bytes. Tries each place that holds this number."""
    data, newer = bundle.read_bytes(), tmp_path / "newer.fuse"
    features = (0b101011 | 1 << 16).to_bytes(8, "little")
    errors = []
    for at in range(0, len(data) - 8):
        if data[at:at + 8] == features:
            newer.write_bytes(data[:at + 7] + b"\x40" + data[at + 8:])
            run = fusebox("replay", newer, "--json")
            errors += [o["error"] for o in objects(run) if "error" in o]
    assert [e for e in errors if e["code"] == "E0113" and "header" in e["place"]]


def test_a_bundle_without_a_run(small, tmp_path):
    path = tmp_path / "p.fuse"
    fusebox("convert", small, path)
    assert error_of("replay", path)[0] == "E0112"


def test_an_unwritable_record_leaves_nothing(small, tmp_path):
    assert error_of("run", small, "--on", "host", "--record", tmp_path / "no" / "such" / "b.fuse")[0] == "E0431"
    folder = tmp_path / "folder.fuse"
    folder.mkdir()
    assert error_of("run", small, "--on", "host", "--record", folder)[0] == "E0431"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.fuse", "twice.fir"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk(small):
    assert error_of("run", small, "--on", "host", "--record", "/dev/full")[0] == "E0431"
    with open("/dev/full", "w", encoding="ascii") as full:
        run = subprocess.run([str(FUSEBOX), "fmt", str(small)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 2 and "E0431" in run.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_or_closed_standard_error_changes_no_exit_code(small):
    for words, code in ((["fmt", "missing.fir"], 2), (["run", str(small), "--bogus"], 2), (["run", str(small), "--on", "host"], 0)):
        for redirection in ("2>/dev/full", "2>&-"):
            command = f'"$0" "$@" {redirection}'
            run = subprocess.run(["bash", "-c", command, str(FUSEBOX), *words], stdout=subprocess.PIPE, text=True, check=False,
                                 env={**os.environ, "FUSEBOX_LOG": "cache", "FUSEBOX_CACHE_DIR": str(small)})
            assert run.returncode == code, (words, redirection)
            assert ("%y = f32[5]" in run.stdout) == (code == 0)


def test_a_link_stays_and_its_file_is_replaced(small, tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "folder" / "link.txt"
    link.parent.mkdir()
    link.symlink_to("../target.txt")
    for _ in range(2):  # first to a file that does not exist
        assert fusebox("run", small, "--on", "host", "--plan", "automatic", "--save-steps", link).returncode == 0
        assert link.is_symlink() and target.read_text() and not target.is_symlink()
        target.write_text("old")


def test_an_open_file_is_written_in_place(small, tmp_path):
    captured, link = tmp_path / "captured", tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    with open(captured, "w", encoding="utf-8") as out:
        subprocess.run([str(FUSEBOX), "run", str(small), "--on", "host", "--save-steps", str(link)], stdout=out, check=True)
    assert link.is_symlink()
    steps, _, report = captured.read_text().partition("@twice on host")
    assert steps and "%y = f32[5]" in report


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="a GPU is there")
def test_a_gpu_that_is_not_there(small, tmp_path):
    path = tmp_path / "b.fuse"
    assert error_of("run", small, "--on", "cuda", "--record", path)[0] in ("E0420", "E0423")
    assert not path.exists()


def test_help_has_examples():
    assert "Exit codes" in fusebox("--help").stdout
    for command in "run", "replay", "show", "verify", "fmt", "diff", "convert":
        run = fusebox(command, "--help")
        assert run.returncode == 0 and f"  fusebox {command} " in run.stdout


# -- commands load only what they need


@pytest.mark.parametrize("arguments", [["verify", SILU], ["fmt", SILU], ["show", SILU, "--level", "cuda"], ["run", SILU, "--on", "host"]], ids=lambda a: a[0])
def test_neither_aten_nor_cuda_is_loaded(arguments):
    run = fusebox(*arguments, env={**os.environ, "LD_DEBUG": "files"})
    assert run.returncode == 0 and "libfusebox_" not in run.stderr and "libtorch" not in run.stderr and "libcuda" not in run.stderr
