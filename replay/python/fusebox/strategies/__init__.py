"""Hypothesis strategies for Fusebox: programs, schedules and inputs that are valid by construction, in a user's own pytest.

    from hypothesis import given
    from fusebox import strategies as fs

    @given(fs.cases())
    def test_any_schedule_computes_the_fusion(case):
        fs.check(case)

`cases` puts together `fusions`, `inputs(fusion)` and `schedules(fusion, inputs)`, which use `dtypes`, `extents`, `shapes` and `tensors`.
`check` judges a fusion, inputs and a schedule. If something is wrong it writes a bundle, and the failure's message has its path.
`SchedulingMachine` schedules a fusion step by step, as a user of `fd.sched` would.

Everything shrinks: to few operations, small extents, contiguous inputs of small integers, and few steps. A bundle is named by its
finding, so that a smaller example of the same bug replaces a larger one, and the last and smallest stays.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as e:
    raise ImportError("fusebox.strategies needs Hypothesis: pip install hypothesis; the rest of fusebox does without") from e

from fusebox.strategies.draw_cases import Case, Finding, Outcome, cases, check
from fusebox.strategies.draw_fusions import DrawnFusion, fusions, op_names
from fusebox.strategies.machine import SchedulingMachine
from fusebox.strategies.draw_schedules import schedules
from fusebox.strategies.draw_tensors import TRACKS, dtypes, extents, inputs, shapes, tensors

__all__ = [
    "TRACKS",
    "Case",
    "DrawnFusion",
    "Finding",
    "Outcome",
    "SchedulingMachine",
    "cases",
    "check",
    "dtypes",
    "extents",
    "fusions",
    "inputs",
    "op_names",
    "schedules",
    "shapes",
    "tensors",
]
