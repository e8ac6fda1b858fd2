"""fd.sched: the schedule of a fusion. Axis positions count the loops of a tensor; a negative one counts from the end.

Each call is one step (or a few) on names, applied at once, so that a mistake is reported where it is made. The first step closes
the fusion's definition. fd.to_string() and a recorded bundle hold the steps.
"""

from __future__ import annotations

from typing import Any, Iterable, NoReturn, Sequence

from fusebox import generators, torch_memory
from fusebox.enums import CacheOp, LoadStoreOpType, MemoryType, ParallelType, SwizzleType, word
from fusebox.errors import FuseboxAttributeError, FuseboxError
from fusebox.fusion import Fusion, flag, integer, items, string
from fusebox.values import Scalar, Tensor, Word, raw_tensor, step_word, take_step


def _words(tensors: Iterable[Tensor]) -> list[Word]:
    return [_word(t) for t in items(tensors, "a selection of tensors")]


def _word(tensor: Tensor) -> Word:
    return raw_tensor(tensor).name, ""


class Schedule:
    def __init__(self, fd: Fusion) -> None:
        self._fd = fd

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise FuseboxAttributeError("E0318", "this schedule function is not supported; see fusebox.sched for those that are", name)

    def step(self, kind: str, operands: Sequence[Word], results: Sequence[str] = (), **attributes: object) -> None:
        """Takes one step by its name in the step table, with domains as (tensor, loop)."""
        take_step(self._fd.program, kind, operands, results, attributes)

    def apply(self, steps: str | Iterable[str]) -> None:
        """Takes steps as lines of the text form, such as "split %t1.i0 by 4 -> o, t": a string of one or several lines, or an iterable of them.
        A step that does not apply raises its error; the steps before it stay taken."""
        try:
            lines = iter(steps.splitlines() if isinstance(steps, str) else steps)
        except TypeError:
            raise FuseboxError("E0215", "steps are a string of lines, or an iterable of them", repr(steps)) from None
        for line in lines:
            if step := string(line, "a step").strip():
                self._fd.program.take(step)

    def refusal(self, step: str) -> FuseboxError | None:
        """The reason why a step (a line of the text form) does not apply now, or None. Changes nothing. Raises E01.. for a line that is no step."""
        refused = self._fd.program.refusal(string(step, "a step"))
        return None if refused is None else FuseboxError(*refused)

    def is_applicable(self, step: str) -> bool:
        return self.refusal(step) is None

    def steps(self) -> list[str]:
        """The steps so far, as lines of the text form."""
        return self._fd.program.step_lines()

    def concretize(self, inputs: Sequence[Any]) -> None:
        """Decides symbolic axes (such as a reshape's) by these inputs' shapes, so that steps can name their loops. Only rewrites may come before
        it. The schedule is then for inputs of this kind. Steps that were loaded with the fusion, and wait for these axes, are taken now."""
        self._fd.program.concretize(torch_memory.shapes(torch_memory.listed(inputs)))

    def compile_refusal(self, inputs: Sequence[Any]) -> FuseboxError | None:
        """The reason why the fusion with its steps cannot be compiled for these CPU inputs, or None. Steps that apply singly may not fit together."""
        refused = self._fd.program.compile_refusal([torch_memory.host_argument(v, f"inputs[{i}]") for i, v in enumerate(generators.planned(self._fd, inputs))])
        return None if refused is None else FuseboxError(*refused)

    # -- before the schedule of kernels
    def rewrite(self, name: str, **options: int) -> None:
        """Runs a rewrite pass by its name, such as "dead_code", before every other step. Later steps cannot name tensors that it removes."""
        given = ",".join(f"{key}={value}" for key, value in options.items())
        self.step("rewrite", [], [], name=name, **({"options": given} if given else {}))

    def precision(self, tensors: Sequence[Tensor] = (), fast: bool = True) -> None:
        """Lets a GPU compute these operations by its approximations (fast), or takes that back. Without tensors: every operation that has
        a fast form, which only f32 and narrower floats have. Stands before every other step. Everything is exact where no step says more."""
        self.step("precision", _words(tensors), [], **{"fast" if flag(fast, "fast") else "exact": True})

    def assign(self, tensors: Sequence[Tensor], name: str, executor: str = "kernel") -> None:
        """Puts the operations that make these tensors into the segment of this name, run by "kernel" or "aten". Then every operation needs
        a segment, before the first step of a schedule. Each step goes to the first segment that has all tensors that it names."""
        self.step("assign", _words(tensors), [], name=name, by=executor)

    # -- loops of one tensor: Tensor has the same methods, and says what they do
    def split(self, tensor: Tensor, axis: int, factor: int | Scalar, inner_split: bool = True) -> None:
        self._own(tensor).split(axis, factor, inner_split)

    def merge(self, tensor: Tensor, axis: int, axis_inner: int | None = None) -> None:
        self._own(tensor).merge(axis, axis_inner)

    def reorder(self, tensor: Tensor, old2new: dict[int, int]) -> None:
        self._own(tensor).reorder(old2new)

    def swizzle(self, tensor: Tensor, swizzle_type: SwizzleType, x: int, y: int) -> None:
        self._own(tensor).swizzle(swizzle_type, x, y)

    def resize(self, tensor: Tensor, axis: int, left: int | Scalar, right: int | Scalar) -> None:
        loop = self._own(tensor).axis(axis).name
        widths = [step_word(w, "a width") for w in (left, right)]
        self.step("resize", [(tensor.name, loop), *widths], [self._fd.program.fresh_loop(tensor.name, loop + "r")])

    def parallelize(self, tensor: Tensor, axis: int, parallel_type: ParallelType) -> None:
        self._own(tensor).parallelize(axis, parallel_type)

    # -- tensors
    def rfactor(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        return self._own(tensor).rfactor(axes)

    reduction_factor = rfactor

    def cache_before(self, tensor: Tensor, op_type: LoadStoreOpType = LoadStoreOpType.set) -> Tensor:
        return self._own(tensor).cache_before(op_type)

    def cache_after(self, tensor: Tensor, op_type: LoadStoreOpType = LoadStoreOpType.set, cache_op: CacheOp = CacheOp.unspecified) -> Tensor:
        return self._own(tensor).cache_after(op_type, cache_op)

    def cache_fork(self, tensor: Tensor) -> Tensor:
        return self._own(tensor).cache_fork()

    def recompute(self, tensor: Tensor, consumer: Tensor) -> Tensor:
        """Gives one consumer a copy of its own of the operation that makes the tensor."""
        operands = [_word(tensor), _word(consumer)]
        name = self._fd.program.fresh_value(tensor.name + "_re")
        self.step("recompute", operands, [name])
        return self._named(name)

    def set_memory_type(self, tensor: Tensor, memory_type: MemoryType) -> None:
        self._own(tensor).set_memory_type(memory_type)

    def set_allocation(self, tensor: Tensor, axes: Sequence[int], contiguity: Sequence[bool] | None = None) -> None:
        self._own(tensor).set_allocation(axes, contiguity)

    def set_allocation_as_loop(self, tensor: Tensor) -> None:
        self._own(tensor).set_allocation_as_loop()

    def set_loop_domain(self, tensor: Tensor, like: Tensor) -> None:
        """Makes the tensor loop over the domains of a producer or consumer, across a reshape, pad, slice or cat."""
        self.step("set_loop_domain", [_word(tensor), _word(like)])

    def set_device_mesh(self, tensor: Tensor, devices: Sequence[int]) -> None:
        self._own(tensor).set_device_mesh(devices)

    def circular_buffer(self, tensor: Tensor, number_of_stages: int) -> None:
        self.step("circular_buffer", [_word(tensor)], depth=integer(number_of_stages, "a number of stages"))

    # -- facts
    def assume(
        self,
        *sizes: Scalar,
        multiple_of: int | None = None,
        at_most: int | Scalar | None = None,
        below: int | Scalar | None = None,
        equal: int | Scalar | None = None,
    ) -> None:
        """States facts about the product of these sizes. Each launch checks them (E0409), and the kernel relies on them."""
        bounds = [0 if b is None else step_word(b, "a bound") for b in (multiple_of, at_most, below, equal)]
        if not all(isinstance(s, Scalar) for s in sizes):
            raise FuseboxError("E0215", "assume takes scalars, such as fd.ops.size gives", repr(sizes))
        self.step("assume", [*((s.name, "") for s in sizes), *bounds])

    def bound_launch(self, threads: int, blocks: int = 1, tensors: Sequence[Tensor] = ()) -> None:
        """Compiles the kernel of the tensors (none: every kernel) for at most so many threads in a block, and for at least so many blocks on a
        multiprocessor at once. Each launch checks the threads (E0409)."""
        self.step("bound_launch", [*_words(tensors), integer(threads, "a number of threads"), integer(blocks, "a number of blocks")])

    def dependent_launch(self, tensors: Sequence[Tensor] = ()) -> None:
        """Lets blocks of the kernel of the tensors (none: every kernel) begin before the launches in front of them in the stream have ended. They
        wait for these before they touch memory, so only the time between two launches gets shorter (programmatic dependent launch, sm_90)."""
        self.step("dependent_launch", [*_words(tensors)])

    def cluster(self, blocks: int, on: ParallelType = ParallelType.grid_x, tensors: Sequence[Tensor] = ()) -> None:
        """Runs the blocks along a grid axis of the kernel of the tensors (none: every kernel) as clusters of 2, 4 or 8. A cluster has all blocks of
        the axis. A reduction over this axis alone goes through the shared memory of these blocks. The GPU must be of sm_90 or newer."""
        self.step("cluster", [*_words(tensors), integer(blocks, "a number of blocks")], on=word(on, ParallelType))

    # -- several tensors; an empty `selected` means all
    def transform_like(self, tensor: Tensor, selected: Sequence[Tensor] = ()) -> None:
        self.step("transform_like", [_word(tensor), *_words(selected)])

    def bounded_transform_backward(self, tensor: Tensor, bounds: Sequence[Tensor] = ()) -> None:
        """Replays the tensor's transforms along producers and consumers, up to and including the bounds."""
        self.step("propagate", [_word(tensor), *_words(bounds)])

    def parallelize_like(
        self,
        tensor: Tensor,
        pos: int = -1,
        selected: Sequence[Tensor] = (),
        parallel_types: Iterable[ParallelType] = (),
        propagate_padding: bool = True,
    ) -> None:
        if integer(pos, "pos") not in (-1, len(self._own(tensor).loops())):
            raise FuseboxError("E0318", "parallelize_like copies from all loops; leave pos at -1", f"%{tensor.name}")
        wanted = {word(p, ParallelType) for p in items(parallel_types, "the argument parallel_types")}
        threads = [p.value for p in ParallelType if p.value in wanted]
        given: dict[str, object] = {"threads": threads} if threads else {}
        self.step("parallelize_like", [_word(tensor), *_words(selected)], **given)

    def inline_most(self, selected: Sequence[Tensor] = ()) -> None:
        self.step("inline_most", _words(selected))

    def inline_at(self, tensor: Tensor, pos: int = -1, best_effort: bool = False, selected: Sequence[Tensor] = ()) -> None:
        """Computes the selected tensors (or all that are read) inside their consumers' loops, up to loop `pos` of the tensor, exclusive. −1 is
        behind the last loop. With best_effort each goes as far in as possible."""
        count, pos = len(self._own(tensor).loops()), integer(pos, "pos")
        is_best_effort = flag(best_effort, "best_effort")
        if not -count - 1 <= pos <= count:
            raise FuseboxError("E0206", f"the tensor has {count} loops; a position is from 0 to {count}", f"%{tensor.name}")
        wanted = pos if pos >= 0 else count + 1 + pos
        program = self._fd.program
        names = [raw_tensor(t).name for t in items(selected, "a selection of tensors")] or [n for n in program.tensors() if program.is_read(n)]
        for name in reversed(names):
            loops = program.loops(name)
            for at in range(min(wanted, len(loops)) if is_best_effort or not selected else wanted, 0, -1):
                try:
                    self.step("inline_at", [(name, loops[at - 1].name if at <= len(loops) else "")])
                    break
                except FuseboxError:
                    if not is_best_effort:
                        raise

    # -- questions
    def tensors(self) -> list[Tensor]:
        """All tensors of the scheduled fusion, in order."""
        return [self._named(name) for name in self._fd.program.tensors()]

    def is_reduction(self, tensor: Tensor) -> bool:
        return self._fd.program.is_reduction(raw_tensor(tensor).name)

    def to_string(self, tensor: Tensor) -> str:
        name = raw_tensor(tensor).name
        loops = ", ".join(f"{i.name} {i.iter_type}" + ("" if i.parallel == "serial" else f" on {i.parallel}") for i in self._fd.program.loops(name))
        return f"%{name} [{loops}]"

    def user_schedule_ir(self) -> str:
        """The fusion after the steps so far."""
        return self._fd.program.scheduled_text()

    # -- helpers
    def _own(self, tensor: Tensor) -> Tensor:
        """The tensor of this name in this schedule's fusion: the one given may be of a fusion that this one is a copy of."""
        return Tensor(self._fd, raw_tensor(tensor))

    def _named(self, name: str) -> Tensor:
        return Tensor(self._fd, self._fd.program.value_named(name))
