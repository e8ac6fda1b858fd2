"""The copy of the tree with the mutants: draws them, writes them, builds it.

A folder of mutants has
    tree/           the copy, with the mutants in it; its build is made where it runs
    original/       the mutated files before the mutation
    mutants.json    seed, count, folders; the mutants, and a reserve that replaces those that do not compile
    results.jsonl   a line for each mutant that was run (campaign.py)
"""

import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys

import render

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("ir", "passes", "codegen", "serde", "replay/host")
LIBCLANG = "libclang==18.1.1"
# The code of seeded defects breaks rules on purpose. The headers of kernels are compiled only for a GPU.
LEFT_OUT = re.compile(r"ir/table/defect\.(h|cc)|codegen/runtime/.*")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
MESSAGE = re.compile(r"^(/[^:\n]+):(\d+):", re.MULTILINE)
# Build options that leave out everything but `fusebox`.
OPTIONS = ("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DFUSEBOX_TESTS=OFF", "-DFUSEBOX_PYTHON=OFF", "-DFUSEBOX_CUDA=OFF")


def say(text):
    print(text, file=sys.stderr, flush=True)


def libclang():
    """The module clang.cindex; installs it for this Python if it is missing."""
    try:
        from clang import cindex
    except ImportError:
        say(f"installing {LIBCLANG}")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", LIBCLANG],
                       check=True, stdout=subprocess.DEVNULL)
        from clang import cindex
    return cindex


def run(command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        say(result.stdout[-3000:] + result.stderr[-3000:])
        sys.exit(f"mutants: failed: {shlex.join(str(c) for c in command)}")
    return result.stdout


class Folder:
    def __init__(self, path, build=None):
        self.path = pathlib.Path(path).resolve()
        self.tree, self.original = self.path / "tree", self.path / "original"
        # In the copy, so that relative paths equal those of a normal build and hit the compiler's cache.
        self.build = pathlib.Path(build).resolve() if build else self.tree / "build"
        self.state = self.path / "mutants.json"
        self.data = json.loads(self.state.read_text()) if self.state.exists() else None

    @property
    def mutants(self):
        return self.data["mutants"]

    def save(self):
        temporary = self.state.with_suffix(".new")
        temporary.write_text(json.dumps(self.data, indent=1))
        temporary.rename(self.state)

    # -- the copy

    def copy(self):
        if self.path.exists() and any(self.path.iterdir()) and not (self.tree / "tests" / "mutants").is_dir():
            sys.exit(f"mutants: {self.path} holds something else; name a folder that is empty or new")
        shutil.rmtree(self.path, ignore_errors=True)
        files = run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT).splitlines()
        for name in files:
            if (ROOT / name).is_file() and not name.startswith("corpus/fuzz/"):
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)

    def source(self, name):
        kept = self.original / name
        return (kept if kept.exists() else self.tree / name).read_bytes()

    def write(self, mutants):
        """Updates the copy to these mutants without touching unchanged files. Returns the changed ones."""
        by_file = {}
        for mutant in mutants:
            by_file.setdefault(mutant["file"], []).append(mutant)
        kept = {str(p.relative_to(self.original)) for p in self.original.rglob("*") if p.is_file()}
        changed = set()
        for name in sorted(kept | set(by_file)):
            if name not in kept:
                (self.original / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.tree / name, self.original / name)
            text = render.render(self.source(name), by_file.get(name, []))
            if (self.tree / name).read_bytes() != text:
                (self.tree / name).write_bytes(text)
                changed.add(name)
        return changed

    def configure(self, build):
        cache = build / "CMakeCache.txt"
        if cache.exists() and f"CMAKE_HOME_DIRECTORY:INTERNAL={self.tree}\n" not in cache.read_text():
            shutil.rmtree(build)
        if not cache.exists():
            run(["cmake", "-S", self.tree, "-B", build, "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", *OPTIONS])

    def includers(self, names):
        """The sources that include any of these files."""
        including = {}
        for file in self.tree.rglob("*"):
            if file.suffix in (".cc", ".h", ".inc"):
                for header in INCLUDE.findall(file.read_text(errors="replace")):
                    including.setdefault(header, set()).add(str(file.relative_to(self.tree)))
        reached, new = set(), set(names)
        while new:
            reached |= new
            new = {i for name in new for i in including.get(name, ())} - reached
        return {name for name in reached if name.endswith(".cc")}

    # -- drawing

    def generate(self, seed, count, folders):
        cindex = libclang()
        self.copy()
        reading = self.path / "reading"
        self.configure(reading)
        run(["cmake", "--build", reading, "--target", "fusebox_schemas"])
        checker = Checker(self, cindex, reading)
        places = checker.places(folders)
        random.Random(f"{seed}").shuffle(places)
        draw = random.Random(f"{seed} changes")
        waiting = [draw.choice(place) for place in places]
        for number, mutant in enumerate(waiting, 1):
            mutant["id"] = number
        wanted = count + count // 20 + 5
        chosen, dropped = [], 0
        say(f"{len(waiting)} places")
        while True:
            while waiting and len(chosen) < wanted:
                mutant = waiting.pop(0)
                if render.fits(mutant, [c for c in chosen if c["file"] == mutant["file"]]):
                    chosen.append(mutant)
            bad = checker.check(chosen, self.write(chosen))
            if not bad:
                break
            dropped += len(bad)
            chosen = [c for c in chosen if c["id"] not in bad]
        # Numbered in the order of the draw, so that a smaller count takes the first ones.
        for number, mutant in enumerate(chosen, 1):
            mutant["id"] = number
        self.data = {"seed": seed, "count": count, "folders": list(folders), "places": len(places), "dropped": dropped,
                     "mutants": chosen[:count], "reserve": chosen[count:]}
        self.write(self.mutants)
        say(f"{len(self.mutants)} mutants in {len({m['file'] for m in self.mutants})} files; {dropped} did not compile")
        self.quiet_warnings()
        shutil.rmtree(reading)
        self.save()

    def quiet_warnings(self):
        """Mutants may cause warnings. The flags of sources without mutants stay the same, for the compiler's cache."""
        names = " ".join(f"${{PROJECT_SOURCE_DIR}}/{n}" for n in sorted(self.includers(
            {m["file"] for m in self.mutants + self.data["reserve"]})))
        with open(self.tree / "CMakeLists.txt", "a", encoding="utf-8") as file:
            file.write(f"\nset_property(SOURCE {names}\n  DIRECTORY ir serde passes codegen replay fuzz\n"
                       '  APPEND PROPERTY COMPILE_OPTIONS -w -Wno-narrowing)\n')

    # -- building

    def compile(self, jobs):
        """Builds `fusebox` and replaces mutants that do not compile."""
        self.configure(self.build)
        while True:
            build = subprocess.run(["ninja", "-C", str(self.build), "-k", "0", f"-j{jobs}", "fusebox"], capture_output=True, text=True,
                                   check=False)
            if build.returncode == 0:
                return
            bad = blamed(MESSAGE.findall(build.stdout), self.mutants, self.tree)
            if not bad:
                say(build.stdout[-6000:])
                sys.exit("mutants: the build failed, and no mutant is to blame")
            say(f"{len(bad)} mutants do not compile and are replaced")
            self.data["dropped"] += len(bad)
            self.data["mutants"] = [m for m in self.mutants if m["id"] not in bad]
            while self.data["reserve"] and len(self.mutants) < self.data["count"]:
                self.mutants.append(self.data["reserve"].pop(0))
            self.write(self.mutants)
            self.save()


def blamed(messages, mutants, tree):
    """The numbers of the mutants on lines (path, line) in the compiler's messages."""
    lines = {(os.path.relpath(path, tree), int(line)) for path, line in messages}
    bad = set()
    for mutant in mutants:
        if any((mutant["file"], line) in lines for line in range(mutant["line_start"], mutant["line_end"] + 1)):
            bad.add(mutant["id"])
    return bad


class Checker:
    """Runs libclang on the copy: finds places, and mutants that do not compile."""

    def __init__(self, folder, cindex, build):
        import places
        self.folder, self.cindex, self.finder = folder, cindex, places.Finder
        self.index = cindex.Index.create()
        stubs = build / "stubs"
        stubs.mkdir(exist_ok=True)
        for name in ("x86intrin.h", "immintrin.h"):
            (stubs / name).write_text("")
        commands = json.loads((build / "compile_commands.json").read_text())
        tree = f"{folder.tree}/"
        self.arguments = {c["file"].removeprefix(tree): places.compiler_arguments(c["command"], stubs) for c in commands
                          if c["file"].startswith(tree)}

    def parse(self, name):
        return self.index.parse(str(self.folder.tree / name), self.arguments[name],
                                options=self.cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)

    def unit_of(self, name):
        """A source that includes this file."""
        if name.endswith(".cc"):
            return name
        return min((s for s in self.folder.includers({name}) if s in self.arguments), default=None,
                   key=lambda s: (s.split("/")[0] != name.split("/")[0], s))

    def places(self, folders):
        names = sorted(str(f.relative_to(self.folder.tree)) for folder in folders for f in (self.folder.tree / folder).rglob("*")
                       if f.suffix in (".cc", ".h"))
        names = [n for n in names if not LEFT_OUT.fullmatch(n)]
        if not names:
            sys.exit(f"mutants: no source lies in {' '.join(folders)}; name folders such as {' '.join(FOLDERS)}")
        units, result = {}, []
        for name in names:
            if unit := self.unit_of(name):
                units.setdefault(unit, []).append(name)
        for unit, held in sorted(units.items()):
            if unit not in self.arguments:
                continue
            parsed = self.parse(unit)
            errors = [d for d in parsed.diagnostics if d.severity >= d.Error]
            if errors:
                sys.exit(f"mutants: libclang cannot read {unit}: {errors[0]}")
            for name in held:
                source = self.folder.source(name)
                for place in self.finder(parsed, str(self.folder.tree / name), name, source).places:
                    for mutant in place:
                        mutant["line_start"] = source.count(b"\n", 0, mutant["start"]) + 1
                        mutant["line_end"] = source.count(b"\n", 0, mutant["end"]) + 1
                    result.append(place)
        result.sort(key=lambda p: (p[0]["file"], p[0]["start"], p[0]["end"], p[0]["kind"]))
        return result

    def check(self, mutants, files):
        """The numbers of the mutants in these files that do not compile."""
        bad = set()
        for unit in sorted({u for u in map(self.unit_of, files) if u}):
            messages = []
            parsed = self.parse(unit)  # the places in its messages live as long as it does
            errors = [d for d in parsed.diagnostics if d.severity >= d.Error]
            for error in errors:
                for note in (error, *error.children):
                    if note.location.file:
                        # The prelude adds two lines.
                        messages.append((note.location.file.name, note.location.line - 2))
            found = blamed(messages, mutants, self.folder.tree)
            if errors and not found:
                sys.exit(f"mutants: {unit} does not compile, and no mutant is to blame: {errors[0]}")
            bad |= found
        return bad
