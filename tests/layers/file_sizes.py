#!/usr/bin/env python3
"""Checks that no header has more than 300 lines and no other source file more than 600.

    file_sizes.py [ROOT]      prints one line for each longer file and exits 1, or prints counts and exits 0

A longer file wants a split along a real seam: two subjects, each with a name. Tables (`.inc`) may have any length: a table is as
long as it has rows, and nobody reads it from top to bottom. Generated files are not in the tree.
"""

import statistics

import verdict

ROOMS = ("ir", "serde", "passes", "codegen", "replay", "fuzz", "tests", ".cmake")
LIMITS = {".h": 300} | dict.fromkeys((".cc", ".cuh", ".py", ".pyi", ".html", ".cmake", ".sh"), 600)


def offences(root):
    """Yields (path, lines, limit) of each file over its limit; keeps the lengths of all files in offences.lines."""
    offences.lines = []
    for file in sorted(path for room in ROOMS for path in (root / room).rglob("*")):
        limit = LIMITS.get(file.suffix)
        if limit is None or not file.is_file():
            continue
        lines = len(file.read_bytes().splitlines())
        offences.lines.append(lines)
        if lines > limit:
            yield file.relative_to(root).as_posix(), lines, limit


def described(root):
    for path, lines, limit in offences(root):
        yield f"{path}: {lines} lines; split it along a seam, so that it has at most {limit}"


def summary(count):
    if not offences.lines:
        return None
    short = sum(n < 400 for n in offences.lines)
    return (f"sizes: {len(offences.lines)} files, {sum(offences.lines)} lines, median {statistics.median(offences.lines):.0f}, "
            f"{100 * short / len(offences.lines):.0f} % under 400, {count} over their limit")


if __name__ == "__main__":
    verdict.main(described, summary)
