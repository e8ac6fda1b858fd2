"""Strategies for schedules: lists of steps as lines of the text form. Each step applies where it stands, and together they can be compiled.
The simplest schedule has no step: each operation is a kernel."""

from __future__ import annotations

from typing import Any, Sequence

from hypothesis import strategies as st

from fusebox import _fusebox
from fusebox.definition import FusionDefinition
from fusebox.enums import MemoryType, ParallelType
from fusebox.errors import FuseboxError
from fusebox.strategies.moves import FACTORS, KINDS, MEMORY, PARALLEL, Moves
from fusebox.strategies.draw_tensors import Draw

# Steps that may stand anywhere, the simplest first.
_ANYWHERE = ("cache_after", "cache_before", "set_memory_type", "recompute", "cache_fork", "set_allocation", "inline_at", "propagate", "set_loop_domain", "loop_broadcast")
_TRANSFORMS = ("split", "split", "merge", "reorder", "rfactor", "rfactor", "swizzle", "resize")
_REPAIRS = 12


def prepared(fusion: FusionDefinition, inputs: Sequence[Any], rewrites: Sequence[str] = ()) -> FusionDefinition:
    """A copy after these rewrites, with symbolic axes decided by these inputs, so that steps can name every loop."""
    copy = fusion.copy()
    copy.sched.apply(rewrites)
    copy.sched.concretize(inputs)
    return copy


def rewrites_of(steps: Sequence[str]) -> list[str]:
    """The rewrites at the beginning of a list of steps."""
    return [s for s in steps if s.startswith("rewrite ")]


@st.composite
def _rewrites(draw: Draw) -> list[str]:
    names = draw(st.lists(st.sampled_from(_fusebox.rewrite_names()), min_size=1, max_size=3))
    return [_fusebox.step_line("rewrite", [], [], {"name": name}) for name in names]


@st.composite
def schedules(draw: Draw, fusion: FusionDefinition, inputs: Sequence[Any], *, max_steps: int = 12) -> list[str]:
    """Steps for a fusion without steps, to be run on these inputs: lines that `fd.sched.apply` takes. About `max_steps` are drawn. Each
    applies where it stands. A fusion with operations that ATen alone computes gets rewrites alone. A schedule that cannot be compiled is repaired: tensors that several threads share go to global memory, then
    steps are taken out. So nearly every schedule runs."""
    rewrites = draw(_rewrites()) if draw(st.integers(0, 7)) == 7 else []
    scheduled = prepared(fusion, inputs, rewrites)
    if fusion.program.has_library_ops():
        return _repaired(fusion, inputs, scheduled)
    maker = _Maker(scheduled.program)
    if len(maker.moves.tensors()) > 1 and draw(st.integers(0, 7)) == 7:
        maker.assign(draw)
    if maker.moves.tensors() and draw(st.integers(0, 9)) > 0:
        maker.reduce_innermost()
        maker.draw_all(draw, max_steps)
    return _repaired(fusion, inputs, scheduled)


class _Maker:
    """Takes the drawn steps that apply. The program keeps its steps."""

    def __init__(self, program: _fusebox.Program) -> None:
        self.program = program
        self.moves = Moves(program)

    def take(self, line: str) -> bool:
        if not self.moves.applies(line):
            return False
        self.program.take(line)
        return True

    def draw_all(self, draw: Draw, max_steps: int) -> None:
        """Draws steps in an order that makes kernels: copies, loops of one tensor, the same for the others, threads, inlining."""
        target = self._target(draw)
        for _ in range(draw(st.integers(0, max_steps // 4))):
            draw(_anywhere(self))
        if target not in self.program.tensors():
            target = self.moves.tensors()[0]
        for _ in range(draw(st.integers(0, max_steps // 2))):
            draw(_transform(self, target))
        if draw(st.booleans()):
            self.take(self.moves.alone("transform_like", target))
        for loop in self.moves.loops(target):
            on = draw(st.sampled_from((ParallelType.serial, *PARALLEL)))
            if on is not ParallelType.serial:
                self.take(self.moves.parallelize(target, loop, on))
        if draw(st.booleans()):
            self.take(self.moves.alone("parallelize_like", target))
        if draw(st.booleans()):
            self.take(self.moves.inline_most())
        for _ in range(draw(st.integers(0, max_steps // 6))):
            draw(_anywhere(self))

    def assign(self, draw: Draw) -> None:
        """Divides the operations into two or three segments, in their order."""
        names = list(reversed(self.moves.tensors()))
        cuts = sorted({0, len(names), *(draw(st.integers(1, len(names) - 1)) for _ in range(draw(st.integers(1, 2))))})
        for number, (begin, end) in enumerate(zip(cuts, cuts[1:])):
            by = draw(st.sampled_from(("kernel", "kernel", "kernel", "aten")))
            self.take(self.moves.line("assign", [(n, "") for n in names[begin:end]], name=f"part{number}", by=by))

    def _target(self, draw: Draw) -> str:
        """The tensor that the others are scheduled like: mostly a reduction, else an output."""
        tensors = self.moves.tensors()
        reductions = [t for t in tensors if self.program.is_reduction(t)]
        return draw(st.sampled_from([*reductions, *tensors]))

    def reduce_innermost(self) -> None:
        for tensor in self.moves.tensors():
            loops = self.program.loops(tensor)
            kept = [i.name for i in loops if i.iter_type != "reduce"]
            wanted = kept + [i.name for i in loops if i.iter_type == "reduce"]
            if wanted != [i.name for i in loops]:
                self.take(self.moves.reorder(tensor, wanted))


@st.composite
def _anywhere(draw: Draw, maker: _Maker) -> None:
    if draw(st.integers(0, 2)) == 0:
        return
    moves, kind = maker.moves, draw(st.sampled_from(_ANYWHERE))
    tensors = moves.tensors(with_inputs=kind == "cache_after")
    tensor = draw(st.sampled_from(tensors))
    loops = moves.loops(tensor)
    if kind in ("cache_after", "cache_before", "cache_fork"):
        maker.take(moves.copy(kind, tensor))
    elif kind == "set_memory_type":
        maker.take(moves.set_memory_type(tensor, draw(st.sampled_from(MEMORY))))
    elif kind in ("recompute", "set_loop_domain", "loop_broadcast"):
        possible = moves.possible(kind)
        if possible:
            maker.take(draw(st.sampled_from(possible)))
    elif kind == "set_allocation":
        maker.take(moves.set_allocation(tensor, draw(st.permutations(loops))))
    elif kind == "inline_at" and loops:
        maker.take(moves.inline_at(tensor, draw(st.sampled_from(loops))))
    elif kind == "propagate":
        maker.take(moves.alone(kind, tensor))


@st.composite
def _transform(draw: Draw, maker: _Maker, tensor: str) -> None:
    if draw(st.integers(0, 4)) == 0 or tensor not in maker.program.tensors():
        return
    moves, kind = maker.moves, draw(st.sampled_from(_TRANSFORMS))
    loops = moves.loops(tensor)
    if not loops:
        return
    at = len(loops) - 1 - draw(st.integers(0, len(loops) - 1))
    if kind == "split":
        maker.take(moves.split(tensor, loops[at], draw(st.sampled_from(FACTORS)), draw(st.integers(0, 3)) == 3))
    elif kind == "merge" and at > 0:
        maker.take(moves.merge(tensor, loops[at - 1], loops[at]))
    elif kind == "reorder":
        maker.take(moves.reorder(tensor, draw(st.permutations(loops))))
    elif kind == "swizzle":
        # A swizzle needs loops of one length: splits off parts of one length.
        if at == 0:
            return
        by, how = draw(st.sampled_from((2, 4, 8))), draw(st.sampled_from(("xor", "cyclic")))
        parts = []
        for loop in (loops[at - 1], loops[at]):
            inner = moves.fresh(tensor, loop + "i")[0]
            if maker.take(moves.split(tensor, loop, by)):
                parts.append(inner)
        if len(parts) == 2:
            maker.take(moves.swizzle(tensor, *parts, how))
    elif kind == "resize":
        maker.take(moves.resize(tensor, loops[at], draw(st.integers(-1, 2)), draw(st.integers(-1, 2))))
    elif kind == "rfactor":
        # Reduces part of a loop in a tensor of its own.
        reduced = [i.name for i in maker.program.loops(tensor) if i.iter_type == "reduce"]
        if not reduced:
            return
        loop, factor, inner = draw(st.sampled_from(reduced)), draw(st.sampled_from(FACTORS)), draw(st.booleans())
        parts = moves.fresh(tensor, loop + "o", loop + "i")
        if maker.take(moves.split(tensor, loop, factor)):
            maker.take(moves.rfactor(tensor, [parts[inner]]))


# -- repairs of schedules that cannot be compiled


def _repaired(fusion: FusionDefinition, inputs: Sequence[Any], scheduled: FusionDefinition) -> list[str]:
    steps = scheduled.sched.steps()
    for attempt in range(_REPAIRS):
        refusal = scheduled.sched.compile_refusal(inputs)
        if refusal is None:
            return steps
        steps = _mended(scheduled, steps, refusal, attempt)
        rewrites = rewrites_of(steps)
        scheduled = prepared(fusion, inputs, rewrites)
        maker = _Maker(scheduled.program)
        steps = rewrites + [line for line in steps[len(rewrites):] if maker.take(line)]
    return []  # each operation a kernel


def _mended(scheduled: FusionDefinition, steps: list[str], refusal: FuseboxError, attempt: int) -> list[str]:
    moves, place = Moves(scheduled.program), refusal.place
    resizes = [i for i, s in enumerate(steps) if s.startswith("resize ")]
    if refusal.code == "E0310" and resizes:
        return steps[:resizes[-1]] + steps[resizes[-1] + 1:]
    tensor = place[1:].split(".")[0].split("[")[0].split(" ")[0] if place.startswith("%") else ""
    if tensor in moves.tensors():
        keep = moves.set_memory_type(tensor, MemoryType.global_)
        if keep not in steps and moves.applies(keep):
            return [*steps, keep]
    if attempt >= _REPAIRS // 2:
        # Threads and inlining are given up first.
        steps = [s for s in steps if not s.startswith(("inline", "parallelize"))]
    named = [i for i, s in enumerate(steps) if tensor and f"%{tensor}" in s.replace(".", " ").replace(",", " ").split()]
    at = named[-1] if named else len(steps) - 1
    return steps[:at] + steps[at + 1:]


__all__ = ["KINDS", "schedules"]
