"""The command line that the checks of the tree share: a root, a line for each offence, a count, an exit code."""

import pathlib
import sys


def main(check, summary):
    """`check(root)` yields a line for each offence. `summary(count)` returns the last line, or None if nothing was looked at."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(check(root))
    print("\n".join([*found, summary(len(found)) or "nothing was found to check"]))
    sys.exit(1 if found or not summary(len(found)) else 0)
