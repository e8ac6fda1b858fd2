#!/usr/bin/env python3
"""Installs the build, moves the installed copy, and uses it there as another project would.

    package.py SOURCES BUILD CMAKE COMPILER [unittest options]

Nothing that is checked here may need the sources or the build folder: the copy is used with neither in reach of its paths.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCES, BUILD = map(pathlib.Path, sys.argv[1:3])
CMAKE, COMPILER = sys.argv[3:5]
EXAMPLES = SOURCES / "replay" / "examples"

BUILD_AND_RECORD = """\
fusion @swish {
  %n = size
  %x = input f32[%n] contiguous
  %s = sigmoid %x : f32[%n]
  %y = mul %x, %s : f32[%n]
  output %y
}

%y = f32[4]
  -0.26894143_f32
  0.0_f32
  0.31122968_f32
  1.761594_f32
"""

REPLAY_REPORT = """\
@swish on host
  fusion       identical
  concretized  identical
  segments     identical
  scheduled    identical
  plan         identical
  kernel       identical
  host         identical
  source       identical
  crossings    identical
  outputs      identical
as recorded
"""


def clean_environment(**more):
    """This process's environment without variables that could lead a program to the build."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FUSEBOX", "LD_", "PYTHON", "CMAKE"))}
    return {**kept, **more}


def run(*command, env=None, expect=0, cwd=None):
    """Runs a command and returns its output; its exit code has to be `expect`, or anything but 0 if that is None."""
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=500, check=False, cwd=cwd,
                            env=clean_environment() if env is None else env)
    said = result.stdout + result.stderr
    if result.returncode != expect if expect is not None else result.returncode == 0:
        raise AssertionError(f"{command[0]} exits {result.returncode}: {said[-3000:]}")
    return said


def torch_libraries():
    """The folder of PyTorch's libraries in the build, or None."""
    found = re.search(r"^FUSEBOX_TORCH_ROOT:PATH=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return pathlib.Path(found[1]) / "lib" if found else None


def setUpModule():
    global FOLDER, PREFIX, ENVIRONMENT
    FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="package-"))
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    run(CMAKE, "--install", BUILD, "--prefix", FOLDER / "first")
    # A package may be moved.
    PREFIX = FOLDER / "second place"
    (FOLDER / "first").rename(PREFIX)


class Headers(unittest.TestCase):
    def headers(self):
        return sorted(p for p in (PREFIX / "include").rglob("*") if p.is_file())

    def test_they_are_the_public_ones_and_all_lie_below_fusebox(self):
        names = {p.relative_to(PREFIX / "include").as_posix() for p in self.headers()}
        for wanted in ["ir/build/builder.h", "ir/text/parse.h", "passes/pipeline/pipeline.h", "replay/run/run.h",
                       "replay/record/record.h", "replay/record/replay.h", "ir/table/error.h"]:
            self.assertIn(f"fusebox/{wanted}", names)
        self.assertTrue(all(name.startswith("fusebox/") for name in names), names)
        # What a program never sees: how programs are lowered, emitted and run.
        for hidden in "passes/lower", "passes/plan", "codegen", "replay/host", "replay/cuda", "replay/cli":
            self.assertFalse([n for n in names if n.startswith(f"fusebox/{hidden}/")], hidden)

    def test_they_include_only_each_other_and_the_standard_library(self):
        for header in self.headers():
            for quote, name in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', header.read_text(), re.M):
                if quote == '"':
                    self.assertTrue((PREFIX / "include" / name).is_file(), f"{header}: {name}")
                else:
                    self.assertRegex(name, r"^[a-z_]+$", f"{header}: only headers of the standard library have no suffix")

    def test_each_compiles_alone(self):
        def compiles(header):
            source = f'#include "{header.relative_to(PREFIX / "include").as_posix()}"\n'
            return subprocess.run(
                [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", PREFIX / "include", "-x", "c++", "-"],
                input=source, capture_output=True, text=True, check=False, env=clean_environment()).stderr

        whole = [p for p in self.headers() if p.suffix == ".h"]
        self.assertGreater(len(whole), 20)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, said in zip(whole, pool.map(compiles, whole)):
                self.assertEqual(said, "", header)


class Files(unittest.TestCase):
    def test_none_names_a_folder_of_the_build(self):
        marks = [os.fsencode(p) for p in {SOURCES, BUILD, SOURCES.resolve(), BUILD.resolve()}]
        marks.append(os.fsencode(FOLDER / "first"))
        found = [p.relative_to(PREFIX).as_posix() for p in PREFIX.rglob("*")
                 if p.is_file() and any(mark in p.read_bytes() for mark in marks)]
        self.assertEqual(found, [])
        # The search can fail: the program of the build does name its folder.
        self.assertTrue(any(mark in (BUILD / "CMakeCache.txt").read_bytes() for mark in marks))

    def test_the_library_exports_its_own_names_only(self):
        if shutil.which("nm") is None:
            self.skipTest("no nm here")
        for library in (PREFIX / "lib").glob("*.so"):
            names = [line.split(maxsplit=2)[2] for line in run("nm", "-D", "-C", "--defined-only", library).splitlines()]
            own = r"((typeinfo|typeinfo name|vtable|guard variable) for )?fusebox::" if library.name == "libfusebox.so" else r"fusebox_"
            self.assertEqual([n for n in names if not re.match(own, n)], [], library)
            self.assertTrue(names, library)


class Projects(unittest.TestCase):
    def configure(self, text, **options):
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n{text}\n")
        return run(CMAKE, "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={PREFIX}", **options)

    def test_find_package_compares_versions(self):
        (version,) = re.findall(r"^CMAKE_PROJECT_VERSION:STATIC=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
        major, minor, patch = map(int, version.split("."))
        says = 'message(STATUS "it is ${Fusebox_VERSION}")'
        for right in "", version, f"{major}.{minor}":
            self.assertIn(f"it is {version}", self.configure(f"find_package(Fusebox {right} REQUIRED)\n{says}"))
        for wrong in f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}", f"{major + 1}.0", f"{version} EXACT COMPONENTS no":
            self.assertRegex(self.configure(f"find_package(Fusebox {wrong} REQUIRED)", expect=None), "Fusebox")

    def test_the_examples(self):
        folder = FOLDER / "examples"
        shutil.copytree(EXAMPLES, folder)
        run(CMAKE, "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={PREFIX}",
            "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
        run(CMAKE, "--build", folder / "build", "--parallel", "2")
        self.assertEqual(run(folder / "build" / "build_and_record", "swish.fuse", cwd=folder), BUILD_AND_RECORD)
        self.assertEqual(run(folder / "build" / "replay_report", "swish.fuse", cwd=folder), REPLAY_REPORT)
        # The command line takes the same bundle.
        self.assertIn("replay: identical", run(PREFIX / "bin" / "fusebox", "replay", "swish.fuse", cwd=folder))
        # A bundle that was changed, a file that is none, and no file at all.
        bundle = (folder / "swish.fuse").read_bytes()
        (folder / "cut.fuse").write_bytes(bundle[:-100])
        self.assertRegex(run(folder / "build" / "replay_report", "cut.fuse", cwd=folder, expect=2), r"^E\d{4} ")
        self.assertRegex(run(folder / "build" / "replay_report", "none.fuse", cwd=folder, expect=2), r"^E\d{4} none.fuse: ")
        self.assertIn("usage", run(folder / "build" / "replay_report", expect=2))
        self.assertIn("no/such", run(folder / "build" / "build_and_record", "no/such/x.fuse", cwd=folder, expect=1))

    def test_a_reader_of_the_readme_has_the_example(self):
        readme = (SOURCES / "replay" / "README.md").read_text()
        self.assertIn("```cpp\n" + (EXAMPLES / "build_and_record.cc").read_text() + "```\n", readme)
        self.assertIn("```cmake\n" + (EXAMPLES / "CMakeLists.txt").read_text() + "```\n", readme)


class Programs(unittest.TestCase):
    def fusebox(self, *arguments, bin=None, **options):
        return run((bin or PREFIX / "bin") / "fusebox", *arguments, cwd=FOLDER, **options)

    def test_help_names_no_folder_of_the_build(self):
        text = self.fusebox("--help")
        commands = re.findall(r"^  ([a-z]+) ", text, re.M)
        self.assertIn("replay", commands)
        for said in [text, *(self.fusebox(command, "--help") for command in commands)]:
            self.assertNotRegex(said, "build/|" + re.escape(str(SOURCES)))

    def test_it_runs_where_nothing_else_is(self):
        shutil.copy(SOURCES / "corpus" / "programs" / "softmax.fir", FOLDER)
        self.assertIn("@softmax on host", self.fusebox("run", "softmax.fir", "--on", "host"))
        self.assertRegex(self.fusebox("--version"), r"^\d+\.\d+\.\d+\n$")

    def test_modules_are_found_beside_the_library_then_by_the_variable(self):
        torch = torch_libraries()
        if torch is None or not (PREFIX / "lib" / "libfusebox_aten.so").exists():
            self.skipTest("this build has no ATen module")
        program = SOURCES / "corpus" / "programs" / "softmax.fir"
        with_torch = clean_environment(LD_LIBRARY_PATH=str(torch))
        self.assertIn("agrees with ATen", self.fusebox("run", program, "--on", "host", "--check", env=with_torch))
        # Without PyTorch the error says how to name its folder.
        said = self.fusebox("run", program, "--on", "host", "--check", expect=2)
        self.assertRegex(said, r"(?s)E0423.*libfusebox_aten.so.*LD_LIBRARY_PATH")
        # The program alone, without the modules.
        alone = FOLDER / "alone" / "bin"
        alone.mkdir(parents=True)
        shutil.copy(PREFIX / "bin" / "fusebox", alone)
        said = self.fusebox("run", program, "--on", "host", "--check", bin=alone, env=with_torch, expect=2)
        self.assertRegex(said, r"(?s)E0423.*libfusebox_aten.so.*FUSEBOX_MODULE_PATH")
        named = {**with_torch, "FUSEBOX_MODULE_PATH": f"/no/such/folder::{PREFIX / 'lib'}"}
        self.assertIn("agrees with ATen", self.fusebox("run", program, "--on", "host", "--check", bin=alone, env=named))

    def test_a_module_of_another_build_is_refused(self):
        if not (PREFIX / "lib" / "libfusebox_aten.so").exists():
            self.skipTest("this build has no ATen module")
        source = FOLDER / "other.cc"
        library = FOLDER / "other" / "bin" / "libfusebox_aten.so"
        library.parent.mkdir(parents=True)
        shutil.copy(PREFIX / "bin" / "fusebox", library.parent)
        for identity in "", 'extern "C" const char* fusebox_module_identity() { return "0.0.1"; }\n':
            source.write_text(identity + 'extern "C" void* fusebox_aten() { __builtin_trap(); }\n')
            run(COMPILER, "-shared", "-fPIC", "-o", library, source)
            program = SOURCES / "corpus" / "programs" / "softmax.fir"
            said = self.fusebox("run", program, "--on", "host", "--check", bin=library.parent, expect=2)
            self.assertRegex(said, "(?s)E0423.*another build of Fusebox, " + ("0.0.1" if identity else "an unknown version"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
