#!/usr/bin/env python3
"""Tests that the layer check finds every kind of offence. Plants one after the other in a copy of the rooms.

    planted.py ROOT
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check  # noqa: E402
import file_sizes  # noqa: E402
import readme_paths  # noqa: E402
import switches  # noqa: E402

OTHER = [
    ("ir", "#include <fstream>"),
    ("ir", "#include <ATen/ATen.h>"),
    ("ir", "#include <flatbuffers/flatbuffers.h>"),
    ("passes", "#include <chrono>"),
    ("passes", 'const char* home = getenv("HOME");'),
    ("codegen", "#include <nvrtc.h>"),
    ("replay", "#include <ATen/ATen.h>"),
    ("replay", "#include <cuda.h>"),
    ("serde", '#include "graph.h"'),
    ("codegen", '#include "vendor/graph.h"'),
]


def inside(room):
    """A folder of the room that may hold code."""
    return f"{room}/{next(iter(check.FOLDERS[room]))}" if room in check.FOLDERS else room


def planted():
    for room, allowed in check.ROOMS.items():
        for other in check.ROOMS:
            if other not in allowed:
                yield inside(room), f'  #  include "{other}/planted.h"'
    for room, line in OTHER:
        yield inside(room), line
    for room, folders in check.FOLDERS.items():
        for folder, allowed in folders.items():
            for other in folders:
                if other != folder and other not in allowed.split():
                    yield f"{room}/{folder}", f'#include "{room}/{other}/planted.h"'
    for folder, header in check.ONLY:
        yield folder, f'#include "{header}"'


def run(root):
    return subprocess.run([sys.executable, check.__file__, str(root)], capture_output=True, text=True)


def main():
    source = pathlib.Path(sys.argv[1])
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for room in check.ROOMS:
            code = shutil.ignore_patterns("*.fuse", "*.npy", "__pycache__")
            shutil.copytree(source / room, root / room, ignore=code, dirs_exist_ok=True)
        clean = run(root)
        assert clean.returncode == 0, f"the unchanged copy does not pass:\n{clean.stdout}"
        for room, line in planted():
            file = root / room / "planted_by_test.h"
            file.write_text(f"#pragma once\n{line}\n")
            found = list(check.file_offences(root, file))
            assert [(p, n) for p, n, _ in found] == [(f"{room}/planted_by_test.h", 2)], f"not found: {room}: {line}\n{found}"
            if count % 50 == 0:
                result = run(root)
                place = f"{room}/planted_by_test.h:2: "
                assert result.returncode == 1 and place in result.stdout, f"not found: {room}: {line}\n{result.stdout}"
            file.unlink()
            count += 1
        for room in check.FOLDERS:
            for file in (root / room / "planted_by_test.h", root / room / "planted_folder" / "planted.h"):
                file.parent.mkdir(exist_ok=True)
                file.write_text("#pragma once\n")
                result = run(root)
                file.unlink()
                assert f"{room} keeps its code in folders" in result.stdout, f"not found: {file}\n{result.stdout}"
                count += 1
    print(f"layers: {count} planted offences, all found")
    readme_paths_find()
    switches_find()
    file_sizes_find()


def readme_paths_find():
    """Every form in which a README can name a missing path."""
    forms = ["`ir/no_such_file.h`", "`no_such_file.cc`", "`ir/{graph,no_such_file}.h`", "`passes/no_such_NAME.cc`",
             "```\nserde/no_such_folder/x.py\n```"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for room in ("ir", "passes", "serde"):
            (root / room).mkdir()
        (root / "ir" / "graph.h").write_text("")
        readme = root / "ir" / "README.md"
        readme.write_text("`ir/graph.h`, `graph.h`, `ir/NAME.h` and `small.fir`\n")
        assert not list(readme_paths.offences(root)), list(readme_paths.offences(root))
        for form in forms:
            readme.write_text(f"`ir/graph.h` {form}\n" if not form.startswith("```") else f"`ir/graph.h`\n{form}\n")
            found = list(readme_paths.offences(root))
            assert len(found) == 1, f"{form}: {found}"
    print(f"readme_paths: {len(forms)} planted paths, all found")


def switches_find():
    """Each form of a default over rows that gives no reason, and forms that have nothing to say."""
    row = "case OpKind::kAdd:\n return 1;\n"
    wrong = [
        f"switch (kind) {{\n{row}default:\n return 0;\n}}",
        f"switch (kind) {{\n{row}default :\n return 0;\n}}",
        f"switch (kind) {{\n{row}default:  // the others\n return 0;\n}}",
        f"switch (kind) {{\n{row}default:  // any other:\n return 0;\n}}",
        f"switch (kind) {{\n{row}default:\n // any other: on the next line\n return 0;\n}}",
        "switch (kind) {\ncase kAdd:\n return 1;\ndefault:\n return 0;\n}",
        "switch (kind) {\ncase FUSEBOX_MATH_OPS:\n return 1;\ndefault:\n return 0;\n}",
        "switch (kind) {\n#define FUSEBOX_OP(name) case OpKind::name:\n#include \"table.inc\"\ndefault:\n return 0;\n}",
        # One inside the other, either way round.
        f"switch (size) {{\ncase 1:\nswitch (kind) {{\n{row}default:\n return 0;\n}}\ndefault:\n return 2;\n}}",
        f"switch (kind) {{\n{row}case OpKind::kSub:\nswitch (size) {{\ncase 1:\n return 3;\ndefault:\n return 2;\n}}\ndefault:\n return 0;\n}}",
        # Brackets and words that are no code.
        f"switch (f(\"}}\", '}}', kind)) {{\n{row}// }} default:  // any other: no\ndefault:\n return 0;\n}}",
    ]
    right = [
        f"switch (kind) {{\n{row}}}",
        f"switch (kind) {{\n{row}default:  // any other: is none\n return 0;\n}}",
        f"switch (kind) {{\n{row}default: {{  // any other: is none\n return 0;\n}}\n}}",
        f"switch (kind) {{\n{row}// default:\n}}",
        "switch (size) {\ncase 1:\n return 1;\ncase 1'000:\n return 2;\ndefault:\n return 0;\n}",
        "switch (letter) {\ncase 'k':\n return 1;\ndefault:\n return 0;\n}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "ir").mkdir()
        file = root / "ir" / "planted.cc"
        for text in right:
            file.write_text(text)
            assert not list(switches.offences(root)), f"no offence:\n{text}"
        for text in wrong:
            file.write_text(f"int f(OpKind kind) {{\n{right[1]}\n{text}\n}}\n")
            found = list(switches.offences(root))
            assert len(found) == 1 and found[0][0] == "ir/planted.cc", f"not found:\n{text}\n{found}"
    print(f"switches: {len(wrong)} planted defaults, all found")


def file_sizes_find():
    """A file of each kind with as many lines as it may have, and with one more. A table has no limit."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "ir").mkdir()
        (root / "ir" / "rows.inc").write_text("\n" * 2000)
        for suffix, limit in file_sizes.LIMITS.items():
            file = root / "ir" / f"planted{suffix}"
            file.write_text("\n" * limit)
            assert not list(file_sizes.offences(root)), suffix
            file.write_text("\n" * (limit + 1))
            assert list(file_sizes.offences(root)) == [(f"ir/planted{suffix}", limit + 1, limit)], suffix
            file.unlink()
    print(f"file_sizes: {len(file_sizes.LIMITS)} planted files, all found")


if __name__ == "__main__":
    main()
