"""The command `fusebox` of an installed package. It runs the program in `bin` with PyTorch's libraries from where Python finds them."""

import importlib.util
import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).parent / "bin" / "fusebox"


def library_folders():
    """The folders of the libraries that the program's modules load: PyTorch's, and NVIDIA's compiler if a package has it."""
    for name, below in ("torch", "lib"), ("nvidia", "*/lib"):
        spec = importlib.util.find_spec(name)
        for package in spec.submodule_search_locations or [] if spec else []:
            yield from sorted(map(str, pathlib.Path(package).glob(below)), reverse=True)


def main():
    if not PROGRAM.exists():
        sys.exit("fusebox: this package was built without the command line; build/bin/fusebox of its build is the same program")
    environment = dict(os.environ)
    known = environment.get("LD_LIBRARY_PATH")
    environment["LD_LIBRARY_PATH"] = ":".join([*library_folders(), *([known] if known else [])])
    os.execve(PROGRAM, [str(PROGRAM), *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
