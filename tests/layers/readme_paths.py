#!/usr/bin/env python3
"""Checks that every path in a README exists.

    readme_paths.py [ROOT]      prints one line for each missing path and exits 1, or prints a count and exits 0

In text, a path is a word in backticks with a slash or a source file's suffix. In a block of code, it is a word that
begins with a room. A path starts at the root, or is the end of a path below the README's folder. A word in capitals
stands for any name, and `{a,b}` for each of its parts.
"""

import fnmatch
import pathlib
import re
import subprocess

import verdict

ROOMS = ("ir", "passes", "codegen", "serde", "fuzz", "replay", "corpus", "tests", ".cmake", ".ci")
SUFFIX = r"\.(cc|h|inc|cuh|py|md|fir|fbs|sh|txt|html|json|fuse)"
# Files that commands or users make; they are not in this tree.
OTHERS = ("found/*", "*.batch.fir", ".fuse", "small.fir", "bug.*", "build*/*", "fusebox-findings/*", "test_mine.py", "*.fbs", "*.inc")


def words(text):
    """Yields (line, word, whether the word is in a block of code)."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif in_block:
            for word in re.findall(r"[\w./{},*+-]+", line):
                yield number, word, True
        else:
            for word in re.findall(r"`([^`]+)`", line):
                yield number, word, False


def is_path(word, in_block):
    if not re.fullmatch(r"[\w./{},*-]+", word) or re.match(r"[/.]{2}|/|-", word):
        return False
    if in_block:
        return re.match(rf"({'|'.join(map(re.escape, ROOMS))})/\w", word) is not None
    return bool(re.fullmatch(rf"[\w./{{}},*-]*{SUFFIX}", word) or re.match(rf"({'|'.join(map(re.escape, ROOMS))})/", word))


def alternatives(word):
    match = re.search(r"\{([^{}]*)\}", word)
    if not match:
        return [word]
    return [a for part in match.group(1).split(",") for a in alternatives(word[:match.start()] + part + word[match.end():])]


def pattern(word):
    """The word with capitals as wildcards, without a final dot or slash."""
    word = word.rstrip("/.")
    return re.sub(r"(?<![A-Za-z0-9])[A-Z]+(?![A-Za-z0-9])(?!\.md)|\.\.\.", "*", word)


def tracked(root):
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=False)
    names = files.stdout.splitlines()
    if not names:  # a tree without git
        names = [p.relative_to(root).as_posix() for room in (".", *ROOMS) for p in (root / room).glob("**/*" if room != "." else "*") if p.is_file()]
    folders = {parent.as_posix() for name in names for parent in pathlib.PurePosixPath(name).parents}
    return set(names) | folders


def offences(root):
    """Yields (README, line, path); counts paths in offences.paths."""
    known = tracked(root)
    offences.paths = 0
    for readme in sorted(name for name in known if name.endswith("README.md")):
        folder = readme.removesuffix("README.md")
        below = [name for name in known if name.startswith(folder)]
        for line, word, in_block in words((root / readme).read_text(encoding="utf-8")):
            if not is_path(word, in_block) or any(fnmatch.fnmatchcase(word, other) for other in OTHERS):
                continue
            offences.paths += 1
            for each in alternatives(word):
                wanted = pattern(each)
                # `a/name` may stand for `a/name.h` and `a/name.cc`.
                forms = (wanted, f"{wanted}.*")
                if not (any(fnmatch.filter(known, form) for form in forms) or any(fnmatch.filter(below, f"{folder}{form}") for form in forms)
                        or any(fnmatch.filter(below, f"{folder}*/{form}") for form in forms)):
                    yield readme, line, each


if __name__ == "__main__":
    verdict.main(lambda root: (f"{readme}:{line}: {path} does not exist" for readme, line, path in offences(root)),
                 lambda count: offences.paths and f"readme_paths: {offences.paths} paths, {count} that do not exist")
