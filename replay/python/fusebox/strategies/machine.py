"""Scheduling step by step, as a state machine of Hypothesis. After each step the program verifies, reads as it was written, and computes
the values of ATen and of the unfused plan.

    class TestMine(SchedulingMachine.TestCase):
        settings = settings(max_examples=50)
"""

from __future__ import annotations

from typing import Any, Sequence

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fusebox.definition import FusionDefinition
from fusebox.strategies.draw_cases import check
from fusebox.strategies.draw_fusions import DrawnFusion, fusions
from fusebox.strategies.moves import KINDS, Moves
from fusebox.strategies.draw_schedules import prepared
from fusebox.strategies.draw_tensors import TRACKS, inputs


def _steps(kind: str) -> st.SearchStrategy[str]:
    """A step of this kind that applies to the machine's program as it is now."""
    return st.runner().flatmap(lambda machine: st.sampled_from(machine.possible(kind)))


class SchedulingMachine(RuleBasedStateMachine):
    """Draws a fusion with inputs, and takes one applicable step after another. Each kind of step has a rule, whose precondition is that a
    step of the kind applies somewhere. Subclasses may set `drawn` (the strategy for fusions), `tracks`, and `out` (the folder of
    bundles). Raises a Finding as `check` does."""

    drawn: st.SearchStrategy[DrawnFusion] = fusions(max_ops=4, max_elements=512)
    tracks: Sequence[str] = TRACKS
    out: str = "fusebox-findings"

    def __init__(self) -> None:
        super().__init__()
        self.fusion: FusionDefinition | None = None
        self.inputs: list[Any] = []
        self._possible: dict[str, list[str]] = {}

    @initialize(data=st.data())
    def define(self, data: st.DataObject) -> None:
        fusion = data.draw(self.drawn, label="fusion")
        self.inputs = data.draw(inputs(fusion, tracks=self.tracks), label="inputs")
        self.fusion = prepared(fusion, self.inputs)

    def possible(self, kind: str) -> list[str]:
        """Steps of this kind that apply now."""
        if self.fusion is None:
            return []
        if kind not in self._possible:
            self._possible[kind] = Moves(self.fusion.program).possible(kind)
        return self._possible[kind]

    def take(self, step: str) -> None:
        assert self.fusion is not None
        self.fusion.sched.apply([step])
        self._possible.clear()

    @invariant()
    def computes_what_it_should(self) -> None:
        if self.fusion is None:
            return
        outcome = check(self.fusion, self.inputs, out=self.out)
        event("ran" if outcome.ran else "refused")


def _add_rule(kind: str) -> None:
    def take(self: SchedulingMachine, step: str) -> None:
        self.take(step)

    take.__name__ = take.__qualname__ = kind
    guarded = precondition(lambda machine: bool(machine.possible(kind)))(rule(step=_steps(kind))(take))
    setattr(SchedulingMachine, kind, guarded)


for _kind in KINDS:
    _add_rule(_kind)
