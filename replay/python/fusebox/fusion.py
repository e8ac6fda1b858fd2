"""The base of FusionDefinition: the program that a fusion's tensors, operations and schedule share.

Imports point one way: `fusion`, `values`, `pointwise`, `ops` and `sched`, `definition`."""

from __future__ import annotations

from typing import NamedTuple

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
        if not isinstance(name, str):
            raise FuseboxError("E0215", "a fusion's name is a string", repr(name))
        if not name:
            raise FuseboxError("E0207", "a fusion's name has at least one character; leave it out to take \"fusion\"", repr(name))
        self.program = _fusebox.Program(name)
        self.drawn: Drawn | None = None
