#!/usr/bin/env python3
"""A new row of a table is asked for wherever it must be known: plants one and compiles the files that must then fail.

    planted_rows.py COMPILER ROOT op|dtype|step [INCLUDE ...]

Each INCLUDE is a folder of system headers. The READMEs of `ir` and `codegen` list these files.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

# table, rows, files that must not compile with them
PLANTS = {
    "op": (
        "ir/table/op_table.inc",
        'FUSEBOX_OP(kPlanted, "planted", kBinaryIndexed, "m", A(kAxis), D(kIndexed), R(kChosenWithin, index(kSame)))\n'
        'FUSEBOX_OP(kPlantedSum, "planted_sum", kReduction, "m", A(kAxes), D(kReduction), R(kReduced))\n',
        [
            "ir/table/type_rule.cc",
            "codegen/cuda_expression.cc",
            "codegen/bytecode_math.cc",
            "passes/lower/emit_reduction.cc",
        ],
    ),
    # A row whose columns do not agree with each other.
    "op-inconsistent": (
        "ir/table/op_table.inc",
        'FUSEBOX_OP(kPlanted, "planted", kBinaryIndexed, "m", A(kAxis), D(kIndexed), R(kSame))\n',
        ["ir/table/op.cc"],
    ),
    "dtype": (
        "ir/table/dtype_table.inc",
        'FUSEBOX_DTYPE(kPlanted, "f8e3m4", 8, kFloating, kArithmetic, "float8_e3m4_t", "None", '
        "F(3, 4, 3, 15.5, kSign | kInfinity | kNan))\n",
        ["ir/scalar/numeric.cc", "replay/host/lanes_convert.cc", "replay/host/lanes_integer.cc"],
    ),
    "dtype-inconsistent": (
        "ir/table/dtype_table.inc",
        'FUSEBOX_DTYPE(kPlanted, "f8e3m4", 8, kFloating, kArithmetic, "float8_e3m4_t", "None", '
        "F(3, 3, 3, 15.5, kSign | kInfinity | kNan))\n",
        ["ir/table/dtype.cc"],
    ),
    "step": (
        "ir/module/step_table.inc",
        'FUSEBOX_STEP(kPlanted, "planted", "t", "", A(), "does nothing")\n',
        ["ir/step/step.cc"],
    ),
}


def main():
    compiler, root, wanted, *includes = sys.argv[1:]
    root = pathlib.Path(root)
    base = [compiler, "-std=c++20", "-fsyntax-only", "-Werror=switch"]
    system = [part for folder in includes for part in ("-isystem", folder)]
    missed, count = [], 0
    for name, (table, rows, files) in PLANTS.items():
        if name.partition("-")[0] != wanted:
            continue
        with tempfile.TemporaryDirectory() as overlay:
            copy = pathlib.Path(overlay) / table
            copy.parent.mkdir(parents=True)
            shutil.copy(root / table, copy)
            with copy.open("a") as out:
                out.write(rows)
            for file in files:
                command = [*base, f"-I{overlay}", f"-I{root}", *system, str(root / file)]
                result = subprocess.run(command, capture_output=True, text=True)
                count += 1
                # Each message names the row, or the table's rule that it breaks.
                if result.returncode == 0 or not any(w in result.stderr for w in ("kPlanted", "static assertion")):
                    missed.append((name, file, result.stderr[-400:]))
    for name, file, said in missed:
        print(f"planted_rows: {file} does not ask for the new row ({name})\n{said}")
    print(f"planted_rows: {count} files ask for a new {wanted}" if not missed else f"{len(missed)} do not ask")
    return 1 if missed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
