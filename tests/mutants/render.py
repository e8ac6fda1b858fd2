"""Writes mutants into a source. In the resulting text, each mutated place asks its switch (switch.h).

A mutant replaces the bytes [start, end) by `pieces`, each of which is
    a string                 taken as it is, with {n} for the template arguments that name the switch;
    [start, end]             that part of the source, with the mutants that lie in it;
    ["line", start, end]     the same on one line, for a part that is written twice.
No line is added or joined, so that the compiler's messages name lines of the source.
"""

PRELUDE = b'#include "tests/mutants/switch.h"\n#line 1\n'


def wraps_itself(mutant):
    """True if the whole range is one of its own pieces, so that another mutant of the same range fits inside."""
    return [mutant["start"], mutant["end"]] in [p[-2:] for p in mutant["pieces"] if not isinstance(p, str)]


def fits(mutant, others):
    """True if the ranges nest. Of two equal ranges, one must wrap the other."""
    for other in others:
        a, b = sorted((mutant, other), key=lambda m: (m["start"], -m["end"]))
        if a["end"] <= b["start"]:
            continue
        if (a["start"], a["end"]) == (b["start"], b["end"]):
            if not wraps_itself(a) and not wraps_itself(b):
                return False
        elif not any(p[-2] <= b["start"] and b["end"] <= p[-1] for p in a["pieces"] if not isinstance(p, str)):
            return False
    return True


def render(source, mutants):
    """The bytes of the file with these mutants, which must fit each other."""
    ordered = sorted(mutants, key=lambda m: (m["start"], -m["end"], not wraps_itself(m), m["id"]))

    def part(start, end, inside):
        out, at = [], start
        inside = [m for m in inside if start <= m["start"] and m["end"] <= end]
        while inside:
            first = inside[0]
            out.append(source[at:first["start"]])
            rest = [m for m in inside[1:] if m["start"] < first["end"]]
            for piece in first["pieces"]:
                if isinstance(piece, str):
                    out.append(piece.replace("{n}", f"{first['id']}, true" if first["constexpr"] else str(first["id"])).encode())
                elif piece[0] == "line":
                    out.append(b" ".join(part(piece[1], piece[2], rest).split()))
                else:
                    out.append(part(piece[0], piece[1], rest))
            at = first["end"]
            inside = inside[1 + len(rest):]
        out.append(source[at:end])
        return b"".join(out)

    return (PRELUDE if mutants else b"") + part(0, len(source), ordered)
