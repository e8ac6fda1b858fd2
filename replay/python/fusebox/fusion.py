"""The base of FusionDefinition: the program that a fusion's tensors, operations and schedule share, and the checks of plain arguments (integers,
flags, lists, texts and paths) that all modules above it use.

Imports point one way: `fusion`, `values`, `pointwise`, `ops` and `sched`, `definition`."""

from __future__ import annotations

import operator
import os
from typing import Any, NamedTuple

from fusebox import _fusebox
from fusebox.errors import FuseboxError


class Drawn(NamedTuple):
    """The random tensors of a fusion that were given no seed. They share two inputs, and each begins where the one before ends."""

    seed: _fusebox.Value
    """The input with the seed."""
    offset: _fusebox.Value
    """The input with the first offset, in blocks of four words."""
    tensors: list[_fusebox.Value]
    next: _fusebox.Value
    """The offset of the next tensor."""


class Fusion:
    def __init__(self, name: str) -> None:
        if not string(name, "a fusion's name"):
            raise FuseboxError("E0207", "a fusion's name has at least one character; leave it out to take \"fusion\"", repr(name))
        self.program = _fusebox.Program(name)
        self.drawn: Drawn | None = None


# -- checks of arguments. Each names its argument by `what`, a subject such as "a factor".
def as_integer(given: object) -> int | None:
    """An integer as Python indexes with it, also NumPy's; None for a bool or anything else. E0104 beyond 64 bits."""
    if isinstance(given, bool) or not hasattr(type(given), "__index__"):
        return None
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):  # an array or a tensor that is no single integer, or has no memory
        return None
    if not -(2**63) <= number < 2**63:
        raise FuseboxError("E0104", "an integer does not fit 64 bits", str(number))
    return number


def as_integers(given: object) -> list[int] | None:
    """A list of integers; None for anything else."""
    if not isinstance(given, (list, tuple, range)):
        return None
    found = [i for i in map(as_integer, given) if i is not None]
    return found if len(found) == len(given) else None


def integer(given: object, what: str) -> int:
    number = as_integer(given)
    if number is None:
        raise FuseboxError("E0207", f"{what} is an integer", repr(given))
    return number


def integers(given: object, what: str) -> list[int]:
    numbers = as_integers(given)
    if numbers is None:
        raise FuseboxError("E0207", f"{what} is a list of integers", repr(given))
    return numbers


def count(given: object, what: str) -> int:
    """A number of threads or runs. E0440 for anything but an integer of 32 bits."""
    is_large = isinstance(given, int) and not -(2**31) <= given < 2**31
    number = None if is_large else as_integer(given)
    if number is None or not -(2**31) <= number < 2**31:
        raise FuseboxError("E0440", f"{what} is an integer of 32 bits", repr(given))
    return number


def flag(given: object, what: str) -> bool:
    """The truth of a value. E0215 for one that has none, such as an array of several elements."""
    try:
        return bool(given)
    except (TypeError, ValueError, RuntimeError):
        raise FuseboxError("E0215", f"{what} is True or False", repr(given)) from None


def items(given: object, what: str) -> list[Any]:
    """The items of any iterable but a string. E0215 for anything else."""
    try:
        if not isinstance(given, (str, bytes)):
            return list(given)  # type: ignore[call-overload]
    except TypeError:
        pass
    raise FuseboxError("E0215", f"{what} is a list", repr(given))


def string(given: object, what: str) -> str:
    """A string that UTF-8 can hold. E0215 for what is no string, E0101 for a lone surrogate."""
    if not isinstance(given, str):
        raise FuseboxError("E0215", f"{what} is a string", repr(given))
    try:
        given.encode()
    except UnicodeEncodeError as e:
        raise FuseboxError("E0101", f"{what} has a lone surrogate, which UTF-8 cannot hold; leave it out", repr(given[e.start : e.end])) from None
    return given


def path_text(path: object, code: str) -> str:
    """A path as the extension takes it. E0215 for what is no path. `code`, that of a file which cannot be opened, for a path with a NUL, and for
    one that is not UTF-8."""
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise FuseboxError("E0215", "a path is a string, bytes or an os.PathLike", repr(path)) from None
    try:
        name.encode()
    except UnicodeEncodeError:
        raise FuseboxError(code, "the path is not UTF-8; rename the file", repr(path)) from None
    if "\0" in name:
        raise FuseboxError(code, "the path has a NUL, where the system would end it; leave it out", repr(path))
    return name
