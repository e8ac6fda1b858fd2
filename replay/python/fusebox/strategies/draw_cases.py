"""Judges a fusion, inputs and a schedule: runs them on the checked host executor and compares with ATen's bounds and the unfused plan. A
finding is kept as a bundle."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import re
from dataclasses import dataclass, field
from typing import Any, Sequence

from hypothesis import currently_in_test_context, event
from hypothesis import strategies as st

from fusebox.definition import FusionDefinition
from fusebox.errors import FuseboxError
from fusebox.strategies.draw_fusions import fusions
from fusebox.strategies.draw_schedules import prepared, rewrites_of, schedules
from fusebox.strategies.draw_tensors import Draw, TRACKS, inputs
from fusebox.torch_memory import host_argument


class Finding(AssertionError):
    """Something is wrong. `signature` names the stage, the check and the kind of place; the same bug gives the same signature, as far as one
    can tell. `path` is the bundle. Each signature has a class of its own: Hypothesis tells failures apart by class and line, and must not
    take one for another while it shrinks."""

    signature = ""

    def __init__(self, message: str, path: pathlib.Path) -> None:
        super().__init__(message)
        self.path = path


@functools.cache
def _finding_class(signature: str) -> type[Finding]:
    return type("Finding", (Finding,), {"signature": signature, "__module__": Finding.__module__})


@dataclass(frozen=True)
class Outcome:
    """`ran` says that the outputs were compared. If the steps cannot be compiled or the launch exceeds a limit, `why` has the reason."""

    ran: bool
    why: str = ""


@dataclass(frozen=True)
class Case:
    """A fusion without steps, its inputs, and the steps of a schedule as lines of the text form."""

    fusion: FusionDefinition
    inputs: list[Any] = field(repr=False)
    schedule: list[str]

    def __repr__(self) -> str:
        given = ", ".join(
            f"{v.dtype} {list(v.shape)} strides {list(v.stride())} offset {v.storage_offset()}" if hasattr(v, "stride") else repr(v) for v in self.inputs
        )
        return f"Case(\n{self.fusion.to_string()}inputs {given}\n" + "".join(f"{s}\n" for s in self.schedule) + ")"


@st.composite
def cases(draw: Draw, *, max_steps: int = 12, tracks: Sequence[str] = TRACKS, **options: Any) -> Case:
    """A fusion, inputs and a schedule for it. `options` are those of `fusions`; `tracks` are kinds of values, from TRACKS."""
    fusion = draw(fusions(**options))
    given = draw(inputs(fusion, tracks=tracks))
    return Case(fusion, given, draw(schedules(fusion, given, max_steps=max_steps)))


def check(
    case: Case | FusionDefinition,
    inputs: Sequence[Any] | None = None,
    schedule: Sequence[str] = (),
    *,
    out: str | os.PathLike[str] = "fusebox-findings",
) -> Outcome:
    """Judges a case, or a fusion with inputs and a schedule (lines as `fd.sched.apply` takes them). A fusion that has steps is judged with
    those; give no schedule then. Changes none of them.

    Raises a Finding for an internal error, for a check of the executor that fails, for an output outside ATen's bounds or with other bits
    than the unfused plan's, and for a program that changes when it is written and read. The folder `out` then has a bundle named by
    the signature. Raises FuseboxError for inputs that do not fit, or a step that does not apply."""
    if isinstance(case, Case):
        case, inputs, schedule = case.fusion, case.inputs, case.schedule
    if inputs is None:
        raise FuseboxError("E0402", "the inputs to judge a fusion on are missing", "check")
    scheduled = case
    if schedule:
        rewrites = rewrites_of(schedule)
        scheduled = prepared(case, inputs, rewrites)
        scheduled.sched.apply(schedule[len(rewrites):])
    verdict = scheduled.judge(inputs)
    if verdict.outcome == "failed":
        signature = " ".join(part for part in (verdict.stage, verdict.check, verdict.place) if part)
        path = keep(scheduled, inputs, signature, verdict.message, out)
        raise _finding_class(signature)(f"{signature}: {verdict.message}\nrecorded in {path}", path)
    if verdict.outcome == "refused":
        if currently_in_test_context():
            event(f"refused: {verdict.stage} {verdict.check}")
        return Outcome(False, verdict.message)
    return Outcome(True)


def keep(fusion: FusionDefinition, inputs: Sequence[Any], signature: str, message: str, out: str | os.PathLike[str]) -> pathlib.Path:
    """Writes the bundle of a finding, over an earlier one of the same signature, and returns its path. If the bug keeps a .fuse file from
    being written, writes the program's text as a .fir file."""
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9]+", "-", signature).strip("-")[:80]
    if stem != signature.replace(" ", "-"):
        stem += "-" + hashlib.sha256(signature.encode()).hexdigest()[:6]
    path = (folder / f"{stem}.fuse").absolute()
    path.unlink(missing_ok=True)
    arguments = [host_argument(v, f"inputs[{i}]") for i, v in enumerate(inputs)]
    try:
        fusion.program.record(os.fspath(path), arguments, "host", {"finding": signature, "message": message})
    except FuseboxError:
        pass  # the run failed, and the bundle holds the failure
    if path.exists():
        return path
    path = path.with_suffix(".fir")
    path.write_text(f"// {signature}\n{fusion.to_string()}")
    return path
