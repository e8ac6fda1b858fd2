#!/usr/bin/env python3
"""Checks that the modules of the Python package import each other without a circle.

    python_imports.py ROOT      prints one circle and exits 1, or prints a count and exits 0

An import counts wherever it stands: in a function, below `if TYPE_CHECKING` and in a .pyi file too. The package's own
`__init__` gathers its modules, so an import of a module by way of the package counts as an import of the module alone.
"""

import ast
import pathlib
import sys
import tempfile

PACKAGE = "fusebox"


def module_of(folder, file):
    parts = (PACKAGE, *file.relative_to(folder).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(module, is_package, tree, modules):
    """Yields each module of the package that the tree imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parents = parts[:len(parts) - node.level + is_package]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            for name in node.names:
                if f"{base}.{name.name}" in modules:
                    yield f"{base}.{name.name}"
                elif base in modules:
                    yield base


def imports(folder):
    """Module -> modules that it imports, of the package in `folder`."""
    files = {file: module_of(folder, file) for file in sorted(folder.rglob("*.py*")) if file.suffix in (".py", ".pyi")}
    graph = {module: set() for module in files.values()}
    for file, module in files.items():
        is_package = file.stem == "__init__"
        graph[module] |= set(imported(module, is_package, ast.parse(file.read_text(encoding="utf-8")), graph)) - {module}
    return graph


def circle(graph):
    """The modules of one circle, the first one again at its end, or an empty list."""
    done = set()

    def search(module, path):
        if module in path:
            return [*path[path.index(module):], module]
        if module in done:
            return []
        for other in sorted(graph[module]):
            if found := search(other, [*path, module]):
                return found
        done.add(module)
        return []

    for module in sorted(graph):
        if found := search(module, []):
            return found
    return []


def find_planted():
    """The check finds a circle in each form that an import can take."""
    forms = ["import fusebox.a", "from fusebox import a", "from fusebox.a import x", "from . import a", "from .a import x",
             "def f():\n    from fusebox.a import x", "if TYPE_CHECKING:\n    from fusebox.a import x"]
    for suffix in (".py", ".pyi"):
        for form in forms:
            with tempfile.TemporaryDirectory() as place:
                folder = pathlib.Path(place)
                (folder / "__init__.py").write_text("from fusebox.a import x\n")
                (folder / "a.py").write_text("from fusebox.b import y\n")
                (folder / "b.py").write_text("y = 1\n")
                assert not circle(imports(folder))
                (folder / f"b{suffix}").write_text(form + "\n")
                found = circle(imports(folder))
                assert found == ["fusebox.a", "fusebox.b", "fusebox.a"], f"not found: {form}: {found}"
    return 2 * len(forms)


def main():
    planted = find_planted()
    graph = imports(pathlib.Path(sys.argv[1]).resolve() / "replay" / "python" / PACKAGE)
    found = circle(graph)
    if found:
        print("python_imports: a circle: " + " imports ".join(found))
    print(f"python_imports: {len(graph)} modules, {planted} planted circles found")
    return 1 if found or not graph else 0


if __name__ == "__main__":
    sys.exit(main())
