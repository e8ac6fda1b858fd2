"""Replays of recorded bundles."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from fusebox import _fusebox
from fusebox.fusion import count, flag, items, path_text, string


@dataclass(frozen=True)
class Stage:
    name: str
    verdict: str
    """"identical", "different" or "not comparable"."""
    why: str
    """The reason, for "not comparable"."""
    difference: str
    """For the first stage that differs: recorded lines with -, new ones with +."""


@dataclass(frozen=True)
class Replay:
    program: str
    executor: str
    stages: tuple[Stage, ...]

    @property
    def first_difference(self) -> Stage | None:
        return next((s for s in self.stages if s.verdict == "different"), None)

    @property
    def identical(self) -> bool:
        return self.first_difference is None


def replay(
    path: str | os.PathLike[str],
    *,
    on: str | None = None,
    start: str = "fusion",
    trust_artifacts: bool = False,
    threads: int = 1,
    defects: Sequence[str] = (),
) -> Replay:
    """Computes every stage of a bundle's run again. `on` is cuda, host or aten; the default is the recorded executor. `start` is fusion,
    scheduled, kernel or source: programs up to that stage are taken from the bundle. `defects` names seeded defects, in place of the
    bundle's."""
    file = path_text(path, "E0430")
    executor = None if on is None else string(on, "an executor")
    stage = string(start, "the stage to start from")
    trusts = flag(trust_artifacts, "trust_artifacts")
    threads = count(threads, "the number of threads")
    names = [string(d, "a defect") for d in items(defects, "the argument defects")]
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  loads PyTorch's libraries, which the ATen module needs
    result = _fusebox.replay(file, executor, stage, trusts, threads, names)
    return Replay(result["program"], result["executor"], tuple(Stage(*s) for s in result["stages"]))
