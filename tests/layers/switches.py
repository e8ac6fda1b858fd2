#!/usr/bin/env python3
"""Checks that a switch over rows of a table has no `default` that could answer for a row which nobody thought of.

    switches.py [ROOT]      prints one line for each offence and exits 1, or prints a count and exits 0

A switch is over rows where one of its labels is an enumerator (`OpKind::kAdd`, `kAdd`) or a list of them
(`FUSEBOX_MATH_OPS`). It names every row, so that the compiler asks for a new one, or says behind its `default` why the
answer is right for any row that may be added:

    default:  // any other: stays as it is written, which is never wrong

Switches over numbers and characters may have a `default` as they like.
"""

import re

import verdict

ROOMS = ("ir", "serde", "passes", "codegen", "replay", "fuzz", "tests")
CODE = {".h", ".cc", ".inc"}

# Comments and literals. A digit separator (`1'000`) opens no character.
BLANK = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
SWITCH = re.compile(r"\bswitch\s*\(")
LABEL = re.compile(r"\bcase\s+((?:[^:?]|::)+):(?!:)")
DEFAULT = re.compile(r"\bdefault\s*:")
ENUMERATOR = re.compile(r"\bk(?:[A-Z]|##)|\bFUSEBOX_")
REASON = re.compile(r"default[ \t]*:[ \t]*\{?[ \t]*// any other: \S")


def blank(text):
    """The text without comments and literals, every character at its place."""
    return BLANK.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def closing(text, at):
    """Where the bracket that opens at `at` is closed."""
    pairs = {"(": ")", "{": "}"}
    depth = 0
    for i in range(at, len(text)):
        if text[i] == text[at]:
            depth += 1
        elif text[i] == pairs[text[at]]:
            depth -= 1
            if depth == 0:
                return i
    raise ValueError(f"a bracket is not closed: {text[at:at + 60]!r}")


def bodies(text):
    """(begin, end) of each switch's body, in the order in which they begin."""
    for match in SWITCH.finditer(text):
        begin = text.index("{", closing(text, match.end() - 1))
        yield begin, closing(text, begin)


def row_switches(text):
    """For each switch over rows: where its `default` stands, or None."""
    plain = blank(text)
    spans = list(bodies(plain))
    for begin, end in spans:
        own = list(plain[begin:end])
        for other_begin, other_end in spans:
            if begin < other_begin < end:
                own[other_begin - begin:other_end - begin] = " " * (other_end - other_begin)
        own = "".join(own)
        labels = LABEL.findall(own)
        # Labels may be the expansion of a table, whose macro is defined inside the switch.
        if not any(ENUMERATOR.search(label) for label in labels) and "FUSEBOX_" not in own:
            continue
        default = DEFAULT.search(own)
        yield begin + default.start() if default else None


def offences(root):
    """Yields (path, line) of each default without a reason; counts switches and reasons in offences.count, .reasons."""
    offences.count = offences.reasons = 0
    for room in ROOMS:
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in CODE:
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
            for default in row_switches(text):
                offences.count += 1
                if default is None:
                    continue
                if REASON.match(text, default):
                    offences.reasons += 1
                else:
                    yield file.relative_to(root).as_posix(), text.count("\n", 0, default) + 1


def described(root):
    for path, line in offences(root):
        yield f"{path}:{line}: a switch over rows has a default; name the rows, or write why it is right for any other"


def summary(count):
    return offences.count and f"switches: {offences.count} over rows, {offences.reasons} with a default and its reason, {count} without a reason"


if __name__ == "__main__":
    verdict.main(described, summary)
