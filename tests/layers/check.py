#!/usr/bin/env python3
"""Checks that every file includes only what its room and its folder may include, and nothing that would make a pure room impure.

    check.py [ROOT]      prints one line for each offence and exits 1, or prints a count and exits 0

The tables below are the rule.
"""

import re

import verdict

# Room -> rooms that it may include. A room that is missing here holds no code.
ROOMS = {
    "ir": {"ir"},
    "serde": {"ir", "serde"},
    "passes": {"ir", "passes"},
    "codegen": {"ir", "passes", "codegen"},
    "replay": {"ir", "serde", "passes", "codegen", "replay"},
    "fuzz": {"ir", "serde", "passes", "codegen", "replay", "fuzz"},
    "tests": {"ir", "serde", "passes", "codegen", "replay", "fuzz", "tests"},
}

# Room -> its folders, each with those of the room that it may include besides itself. A folder names only folders above it.
FOLDERS = {
    "ir": {
        "table": "",
        "graph": "table",
        "module": "graph table",
        "scalar": "graph table",
        "domain": "graph scalar table",
        "canonical": "graph module table",
        "token": "graph module scalar table",
        "infer": "domain graph module scalar table token",
        "build": "graph infer scalar table",
        "text": "graph infer module scalar table token",
        "verify": "domain graph infer module scalar table",
        "step": "domain graph infer module scalar table token verify",
    },
    "passes": {
        "algebra": "",
        "rewrite": "",
        "segment": "",
        "kernel": "algebra",
        "nest": "algebra",
        "host": "kernel segment",
        "identity": "algebra nest",
        "plan": "algebra nest",
        "lower": "kernel nest plan",
        "schedule": "algebra nest plan rewrite",
        "automatic": "plan schedule segment",
        "pipeline": "automatic host lower plan schedule segment",
    },
    "replay": {
        "data": "",
        "examples": "",
        "picture": "",
        "host": "data",
        "device": "data host",
        "aten": "data device",
        "cuda": "device",
        "cache": "data device",
        "run": "cache data device",
        "timing": "cache data device run",
        "record": "data run",
        "gate": "data record",
        "python": "cache data device record run timing",
        "torch": "aten run",
        "cli": "cache data device gate host picture record run timing",
    },
    "fuzz": {
        "base": "",
        "bytes": "base",
        "field_laws": "base",
        "index_laws": "base",
        "planted": "base",
        "generate": "base field_laws",
        "coverage": "generate",
        "mutate": "generate",
        "known": "base field_laws generate",
        "oracle": "base field_laws generate index_laws known mutate planted",
        "case_bytes": "bytes generate mutate oracle",
        "run": "base coverage mutate oracle",
        "reduce": "generate mutate oracle run",
        "targets": "base bytes case_bytes coverage generate index_laws",
        "campaign": "reduce run",
        "report": "campaign reduce",
        "cli": "base campaign generate oracle reduce report run",
    },
}

# (folder, header) -> the only files of the folder that may include the header. Emission follows a complete plan and may ask it
# questions (passes/plan/plan_queries.h), but it may not plan: only `lower` runs the stages.
ONLY = {
    ("passes/lower", "passes/plan/plan_stages.h"): ("passes/lower/lower.cc",),
}

# Header -> folders that may include it. Libraries that are loaded at run time stay inside their module.
LIBRARIES = {
    r"(ATen|c10|torch)/": ("replay/aten", "replay/python", "replay/torch", "fuzz", "tests"),
    r"(cuda|nvrtc|cuda_runtime)\w*\.h": ("replay/cuda", "tests"),
    r"flatbuffers/": ("serde", "replay", "fuzz", "tests"),
    r"pybind11/": ("replay/python", "replay/torch"),
    r"CLI/": ("replay/cli", "fuzz/cli"),
    r"sleef\.h": ("replay", "fuzz", "tests"),
}

# Rooms that are functions from values to values. They must not use files, devices, clocks, threads or the environment.
PURE = ("ir", "serde", "passes", "codegen")
IMPURE_HEADER = re.compile(
    r"(fstream|filesystem|thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|random|unistd\.h|dlfcn\.h|sys/.*)$")
IMPURE_CALL = re.compile(r"\b(getenv|secure_getenv|fopen|thread_local)\b")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CODE = {".h", ".cc", ".inc", ".cuh", ".cu", ".cpp", ".hpp"}


def lies_in(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def folder_offences(root):
    """Yields the faults of FOLDERS itself, and of files that lie in no folder."""
    for room, folders in FOLDERS.items():
        above = set()
        for folder, allowed in folders.items():
            for name in sorted(set(allowed.split()) - above):
                yield "tests/layers/check.py", 1, f"{room}/{folder} names {name}, which does not stand above it"
            above.add(folder)
        for file in sorted((root / room).rglob("*")):
            parts = file.relative_to(root).parts
            if file.suffix in CODE and (len(parts) < 3 or parts[1] not in folders):
                yield "/".join(parts), 1, f"{room} keeps its code in folders: {', '.join(folders)}"


def folder_refusal(path, header):
    """Why the file may not include this header of its own room; None if it may."""
    room, folder, *rest = path.split("/")
    _, target, *below = header.split("/")
    if room not in FOLDERS or not rest or not below or target == folder:
        return None
    if target in FOLDERS[room].get(folder, "").split():
        return None
    return f"{room}/{folder} may not include {room}/{target}: \"{header}\""


def file_offences(root, file):
    """Yields (path, line, what is wrong) for every offence of one file of a room."""
    path = file.relative_to(root).as_posix()
    # Only NVRTC compiles the CUDA headers, and they include only each other.
    if path.startswith("codegen/runtime/"):
        return
    room = path.split("/")[0]
    text = file.read_text(encoding="utf-8", errors="replace")
    for match in INCLUDE.finditer(text):
        quote, header = match.groups()
        line = text.count("\n", 0, match.start(2)) + 1
        target = header.split("/")[0]
        if quote == '"' and header.endswith(".cuh"):
            continue  # part of a kernel's text; NVRTC finds runtime headers by name
        if quote == '"' and "/" not in header:
            yield path, line, f'"{header}" has to be included from the root, as "{room}/.../{header}"'
        elif quote == '"' and target not in ROOMS:
            yield path, line, f'"{header}" is in no room'
        elif quote == '"' and target not in ROOMS[room]:
            yield path, line, f"{room} may not include {target}: \"{header}\""
        elif quote == '"' and target == room and folder_refusal(path, header):
            yield path, line, folder_refusal(path, header)
        elif quote == '"' and path not in (only := ONLY.get((path.rpartition("/")[0], header), (path,))):
            yield path, line, f"\"{header}\" may be included here only by {', '.join(only)}"
        for library, folders in LIBRARIES.items():
            if re.match(library, header) and not lies_in(path, folders):
                yield path, line, f"<{header}> may be included only in {', '.join(folders)}"
        if room in PURE and quote == "<" and IMPURE_HEADER.match(header):
            yield path, line, f"{room} is pure and may not include <{header}>"
    if room in PURE:
        for number, content in enumerate(text.splitlines(), 1):
            call = IMPURE_CALL.search(content.split("//")[0])
            if call:
                yield path, number, f"{room} is pure and may not use {call.group()}"


def offences(root):
    """Yields (path, line, what is wrong) for every offence below `root`; counts files in offences.files."""
    offences.files = 0
    yield from folder_offences(root)
    for room in ROOMS:
        for file in sorted((root / room).rglob("*")):
            if file.suffix in CODE:
                offences.files += 1
                yield from file_offences(root, file)
    corpus = root / "corpus"
    for file in sorted(corpus.rglob("*")) if corpus.is_dir() else []:
        if file.suffix in CODE:
            yield file.relative_to(root).as_posix(), 1, "corpus holds data only"


if __name__ == "__main__":
    verdict.main(lambda root: (f"{path}:{line}: {what}" for path, line, what in offences(root)),
                 lambda count: offences.files and f"layers: {offences.files} files, {count} offences")
