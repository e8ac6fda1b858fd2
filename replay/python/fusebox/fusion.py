"""The base of FusionDefinition: the program that a fusion's tensors, operations and schedule share.

Imports point one way: `fusion`, `values`, `pointwise`, `ops` and `sched`, `definition`."""

from __future__ import annotations

from fusebox import _fusebox


class Fusion:
    def __init__(self, name: str) -> None:
        self.program = _fusebox.Program(name)
