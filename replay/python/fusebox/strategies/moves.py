"""The next steps that a scheduled program allows: for each kind of step the places where the program says that it applies. Steps are lines
of the text form, such as `split %t1.i0 by 4 -> i0o, i0i`."""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence

from fusebox import _fusebox
from fusebox.enums import MemoryType, ParallelType

Word = int | tuple[str, str]

# An extent that no drawn input reaches.
LARGE = 1 << 20
FACTORS = (2, 3, 4, 1, 5, 7, 8, 16, 32, 64, 128)
# Kinds of steps with which a program on one device can be lowered.
KINDS = tuple(
    kind
    for kind in _fusebox.step_kinds()
    if kind not in ("rewrite", "assign", "concretize", "concretize_reshape", "set_mesh", "circular_buffer")
)
PARALLEL = tuple(
    ParallelType(word)
    for word in ("block.x", "grid.x", "serial", "unroll", "block.y", "grid.y", "vectorize", "unswitch", "block.z", "grid.z")
)
MEMORY = (MemoryType.global_, MemoryType.shared, MemoryType.local)


class Moves:
    """The moves of a program that is being scheduled. It asks the program anew each time."""

    def __init__(self, program: _fusebox.Program) -> None:
        self.program = program

    # -- tensors and loops
    def tensors(self, with_inputs: bool = False) -> list[str]:
        """Tensors, outputs and later ones first."""
        inputs = set() if with_inputs else set(self.program.input_names())
        return [name for name in reversed(self.program.tensors()) if name not in inputs]

    def loops(self, tensor: str) -> list[str]:
        return [loop.name for loop in self.program.loops(tensor)]

    # -- lines
    def line(self, kind: str, operands: Sequence[Word], results: Sequence[str] = (), **attributes: object) -> str:
        return _fusebox.step_line(kind, list(operands), list(results), attributes)

    def applies(self, line: str) -> bool:
        return self.program.refusal(line) is None

    def fresh(self, tensor: str, *wanted: str) -> list[str]:
        """Names for new loops."""
        return [self.program.fresh_loop(tensor, name) for name in wanted]

    def split(self, tensor: str, loop: str, factor: int, outer: bool = False) -> str:
        more = {"outer": 1} if outer else {}
        return self.line("split", [(tensor, loop), factor], self.fresh(tensor, loop + "o", loop + "i"), **more)

    def merge(self, tensor: str, outer: str, inner: str) -> str:
        return self.line("merge", [(tensor, outer), (tensor, inner)], self.fresh(tensor, outer + inner))

    def reorder(self, tensor: str, loops: Sequence[str]) -> str:
        return self.line("reorder", [(tensor, ""), *((tensor, name) for name in loops)])

    def swizzle(self, tensor: str, x: str, y: str, kind: str) -> str:
        return self.line("swizzle", [(tensor, x), (tensor, y)], self.fresh(tensor, x + "s", y + "s"), swizzle=kind)

    def resize(self, tensor: str, loop: str, left: int, right: int) -> str:
        return self.line("resize", [(tensor, loop), left, right], self.fresh(tensor, loop + "r"))

    def parallelize(self, tensor: str, loop: str, on: ParallelType) -> str:
        return self.line("parallelize", [(tensor, loop)], on=on.value)

    def rfactor(self, tensor: str, loops: Sequence[str]) -> str:
        return self.line("rfactor", [(tensor, ""), *((tensor, name) for name in loops)], [self.program.fresh_value(tensor + "_rf")])

    def copy(self, kind: str, tensor: str) -> str:
        """cache_before, cache_after or cache_fork."""
        suffix = {"cache_before": "_cb", "cache_after": "_ca", "cache_fork": "_cf"}[kind]
        return self.line(kind, [(tensor, "")], [self.program.fresh_value(tensor + suffix)])

    def recompute(self, tensor: str, consumer: str) -> str:
        return self.line("recompute", [(tensor, ""), (consumer, "")], [self.program.fresh_value(tensor + "_re")])

    def set_memory_type(self, tensor: str, memory: MemoryType) -> str:
        return self.line("set_memory_type", [(tensor, "")], **{"in": memory.value})

    def set_allocation(self, tensor: str, loops: Sequence[str]) -> str:
        return self.line("set_allocation", [(tensor, ""), *((tensor, name) for name in loops)])

    def alone(self, kind: str, tensor: str) -> str:
        """transform_like, parallelize_like or propagate, to all connected tensors."""
        return self.line(kind, [(tensor, "")])

    def set_loop_domain(self, tensor: str, like: str) -> str:
        return self.line("set_loop_domain", [(tensor, ""), (like, "")])

    def loop_broadcast(self, tensor: str, like: str, loop: str) -> str:
        return self.line("loop_broadcast", [(tensor, ""), (like, loop)], self.fresh(tensor, loop + "b"))

    def inline_at(self, tensor: str, loop: str) -> str:
        return self.line("inline_at", [(tensor, loop)])

    def inline_most(self) -> str:
        return self.line("inline_most", [])

    def precision(self, tensor: str, word: str) -> str:
        return self.line("precision", [(tensor, "")], **{word: True})

    def assume(self, size: str, at_most: int) -> str:
        """That a size is at most a number. The order of the bounds is multiple_of, at_most, below, equal; 0 states nothing."""
        return self.line("assume", [(size, ""), 0, at_most, 0, 0])

    def bound_launch(self, threads: int, blocks: int) -> str:
        return self.line("bound_launch", [threads, blocks])

    def dependent_launch(self) -> str:
        return self.line("dependent_launch", [])

    def cluster(self, blocks: int, on: ParallelType) -> str:
        return self.line("cluster", [blocks], on=on.value)

    # -- applicable steps, the simplest first. The factors, orders and widths tried here stand for all others.
    def possible(self, kind: str) -> list[str]:
        """Lines of this kind that apply now: splits by each factor, reorders that rotate, resizes by one."""
        return [line for line in self._all(kind) if self.applies(line)]

    def _all(self, kind: str) -> Iterator[str]:
        tensors = self.tensors()
        pairs = [(t, loop) for t in tensors for loop in self.loops(t)]
        if kind == "split":
            yield from (self.split(t, loop, by, outer) for t, loop in pairs for outer in (False, True) for by in FACTORS)
        elif kind == "merge":
            yield from (self.merge(t, a, b) for t, a, b in self._neighbours(tensors))
        elif kind == "reorder":
            for t in tensors:
                loops = self.loops(t)
                yield from (self.reorder(t, loops[i:] + loops[:i]) for i in range(1, len(loops)))
        elif kind == "swizzle":
            yield from (self.swizzle(t, a, b, how) for t, a, b in self._neighbours(tensors) for how in ("xor", "cyclic"))
        elif kind == "resize":
            yield from (self.resize(t, loop, *by) for t, loop in pairs for by in ((0, 1), (1, 0), (-1, 0)))
        elif kind == "parallelize":
            yield from (self.parallelize(t, loop, on) for t, loop in pairs for on in PARALLEL)
        elif kind == "rfactor":
            yield from (self.rfactor(t, [loop]) for t, loop in pairs)
        elif kind in ("cache_before", "cache_after", "cache_fork"):
            yield from (self.copy(kind, t) for t in self.tensors(with_inputs=kind == "cache_after"))
        elif kind == "recompute":
            yield from (self.recompute(a, b) for a in tensors for b in tensors if a != b)
        elif kind == "set_memory_type":
            yield from (self.set_memory_type(t, memory) for t in tensors for memory in MEMORY)
        elif kind == "set_allocation":
            yield from (self.set_allocation(t, list(reversed(self.loops(t)))) for t in tensors)
        elif kind in ("transform_like", "parallelize_like", "propagate"):
            yield from (self.alone(kind, t) for t in tensors)
        elif kind == "set_loop_domain":
            yield from (self.set_loop_domain(a, b) for a in tensors for b in tensors if a != b)
        elif kind == "loop_broadcast":
            yield from (self.loop_broadcast(a, b, loop) for a in tensors for b, loop in pairs if a != b)
        elif kind == "inline_at":
            yield from (self.inline_at(t, loop) for t, loop in pairs)
        elif kind == "inline_most":
            yield self.inline_most()
        elif kind == "precision":
            yield from (self.precision(t, word) for t in tensors for word in ("fast", "exact"))
        elif kind == "assume":
            yield from (self.assume(size, LARGE) for size in self.program.sizes())
        elif kind == "bound_launch":
            yield from (self.bound_launch(1024, blocks) for blocks in (1, 2))
        elif kind == "dependent_launch":
            yield self.dependent_launch()
        elif kind == "cluster":
            yield from (self.cluster(blocks, on) for blocks in (2, 4, 8) for on in (ParallelType("grid.x"), ParallelType("grid.y")))
        else:
            raise NotImplementedError(f"fusebox.strategies has no rule for the step {kind}")

    def _neighbours(self, tensors: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        for t in tensors:
            loops = self.loops(t)
            yield from ((t, a, b) for a, b in zip(loops, loops[1:]))
