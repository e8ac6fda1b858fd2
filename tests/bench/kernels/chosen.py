"""Names that an option lists."""

import sys


def chosen_names(option, known, kind):
    """The names in `option`, with commas between them, or all that are known. Ends the program at a name that is not."""
    names = [n for n in option.split(",") if n] or list(known)
    if unknown := set(names) - set(known):
        sys.exit(f"no {kind} is named {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return names
