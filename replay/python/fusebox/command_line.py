"""The command `fusebox` of an installed package. It runs the program in `bin` with PyTorch's libraries from where Python finds them."""

import importlib.util
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import NoReturn

PACKAGE = pathlib.Path(__file__).parent
# In an installed package, and in the build folder, where the package lies in python/.
PROGRAMS = [PACKAGE / "bin" / "fusebox", PACKAGE.parents[1] / "bin" / "fusebox"]


def library_folders() -> Iterator[str]:
    """The folders of the libraries that the program's modules load: PyTorch's, and NVIDIA's compiler if a package has it."""
    for name, below in ("torch", "lib"), ("nvidia", "*/lib"):
        spec = importlib.util.find_spec(name)
        for package in spec.submodule_search_locations or [] if spec else []:
            yield from sorted(map(str, pathlib.Path(package).glob(below)), reverse=True)


def main() -> NoReturn:
    program = next((path for path in PROGRAMS if path.exists()), None)
    if program is None:
        sys.exit("fusebox: this package has no command line; install the package again, or build the target fusebox")
    environment = dict(os.environ)
    known = environment.get("LD_LIBRARY_PATH")
    environment["LD_LIBRARY_PATH"] = ":".join([*library_folders(), *([known] if known else [])])
    os.execve(program, [str(program), *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
