"""Reports the fate of the mutants: the score and the survivors."""

import collections
import pathlib
import statistics

EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")


def read_equivalent(path=EQUIVALENT):
    """{(file, function, change): reason}. Raises ValueError if a line is neither a mutant nor the reason of one."""
    result, key = {}, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            if key is None:
                raise ValueError(f"{path}:{number}: a reason stands below the mutant that it is of")
            result[key] = f"{result[key]} {line.strip()}".strip()
            continue
        place, separator, change = line.partition(": ")
        file, _, function = place.partition(" ")
        if not separator or not function or "[-" not in change:
            raise ValueError(f"{path}:{number}: a mutant is written as FILE FUNCTION: change")
        key = (file, function, change.strip())
        result[key] = ""
    missing = [k for k, reason in result.items() if not reason]
    if missing:
        raise ValueError(f"{path}: no reason is given for {' '.join(missing[0][:2])}: {missing[0][2]}")
    return result


def key(mutant):
    return mutant["file"], mutant["function"], mutant["change"]


def line(mutant):
    return f"{mutant['file']}:{mutant['line']} {mutant['function']}: {mutant['change']}"


def how_far(row):
    if not row["reached"]:
        return "not reached"
    return "reached" if row["differed"] else "reached, never another value"


def report(mutants, results, equivalent):
    """The lines to print."""
    rows = [(m, results[m["id"]]) for m in mutants if m["id"] in results]
    killed = [(m, r) for m, r in rows if r["outcome"] == "killed"]
    survived = [(m, r) for m, r in rows if r["outcome"] == "survived"]
    same = [m for m, _ in survived if key(m) in equivalent]
    gaps = [(m, r) for m, r in survived if key(m) not in equivalent]
    out = []
    by = collections.defaultdict(list)
    for _, row in killed:
        by[row["by"]].append(row["seconds"])
    if killed:
        out.append("killed by         mutants   median s   slowest s")
        for name, seconds in sorted(by.items(), key=lambda item: -len(item[1])):
            out.append(f"{name:<16} {len(seconds):>8} {statistics.median(seconds):>10.1f} {max(seconds):>11.1f}")
    kinds = collections.Counter(m["kind"] for m, _ in rows)
    if rows:
        out.append("kind              mutants     killed")
        dead = collections.Counter(m["kind"] for m, _ in killed)
        out += [f"{kind:<16} {count:>8} {dead[kind]:>10}" for kind, count in sorted(kinds.items())]
    for title in ("not reached", "reached, never another value", "reached"):
        some = [(m, r) for m, r in gaps if how_far(r) == title]
        if some:
            out.append(f"survived, {title}: {len(some)}")
            out += [f"  {m['id']:>4} {line(m)}" for m, _ in sorted(some, key=lambda item: (item[0]["file"], item[0]["line"]))]
    out += [f"equivalent, and killed all the same: {line(m)}: {r['signature']}" for m, r in killed if key(m) in equivalent]
    whole = len(killed) + len(gaps)
    left = len(mutants) - len(rows)
    out.append(f"killed {len(killed)} of {whole} mutants, {100 * len(killed) / whole if whole else 0:.1f} %; {len(same)} equivalent"
               + (f"; {left} not run yet" if left else ""))
    return out
