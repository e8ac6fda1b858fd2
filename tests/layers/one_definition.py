#!/usr/bin/env python3
"""Checks that no two types of the rooms have the same full name in different files.

    one_definition.py [ROOT]      prints one line for each such name and exits 1, or prints a count and exits 0

A program may define a class once. Two files with types of one name compile, and the linker then takes the inline members
of either: memory breaks far away, with some compilers only. Types of unnamed namespaces have no name outside of their
file, so they are left out.
"""

import collections
import re

import verdict

ROOMS = ("ir", "serde", "passes", "codegen", "replay", "fuzz")
TYPE = re.compile(r"(?:class|struct|enum class|enum) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^:].*)?\s*\{")
OPENED = re.compile(r"(?:inline )?namespace ([\w:]*) ?\{")


def types_of(text):
    """The full names of the types that the text defines outside of functions and unnamed namespaces. A namespace opens and
    closes at the margin, and so does a type in it."""
    spaces = []
    for line in text.splitlines():
        if opened := OPENED.match(line):
            spaces.append(opened.group(1))
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif (found := TYPE.match(line)) and "" not in spaces:
            yield "::".join([*spaces, found.group(1)])


def offences(root):
    """Yields a line for each name that stands in several files; counts the names in offences.count."""
    places = collections.defaultdict(list)
    for room in ROOMS:
        for path in sorted([*(root / room).rglob("*.h"), *(root / room).rglob("*.cc")]):
            for name in set(types_of(path.read_text(encoding="utf-8"))):
                places[name].append(path.relative_to(root).as_posix())
    offences.count = len(places)
    for name, files in sorted(places.items()):
        if len(files) > 1:
            yield f"{name} is defined in {' and '.join(files)}; rename all but one"


def summary(count):
    return offences.count and f"one_definition: {offences.count} types, {count} of them in several files"


if __name__ == "__main__":
    verdict.main(offences, summary)
