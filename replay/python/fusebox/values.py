"""The values of a fusion: tensors, scalars, and the loops of a tensor."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Union

from fusebox import _fusebox
from fusebox.enums import CacheOp, DataType, LoadStoreOpType, MemoryType, ParallelType, SwizzleType, word
from fusebox.errors import FuseboxError
from fusebox.fusion import Fusion, as_integer, flag, integers, items, string

Word = int | tuple[str, str]


class _Named:
    def __init__(self, fd: Fusion, value: _fusebox.Value) -> None:
        self.fd = fd
        self.value = value

    @property
    def name(self) -> str:
        """Its name in the text form, without the %; "" for a constant."""
        return self.value.name

    @property
    def dtype(self) -> DataType:
        return DataType(self.fd.program.dtype(self.value))


class Scalar(_Named):
    """A scalar of the fusion: an input, a size, a constant, or a value computed from them."""

    def __repr__(self) -> str:
        return f"<Scalar %{self.name} {self.dtype.name}>"


class Loop:
    """A loop of a tensor; tensor.axis(i) gives it."""

    def __init__(self, tensor: Tensor, name: str, iter_type: str, parallel: str) -> None:
        self.tensor = tensor
        self.name = name
        self.iter_type = iter_type
        self.parallel_type = ParallelType(parallel)

    def parallelize(self, parallel_type: ParallelType) -> None:
        self.tensor.step("parallelize", [(self.tensor.name, self.name)], on=word(parallel_type, ParallelType))

    def is_reduction(self) -> bool:
        return self.iter_type == "reduce"

    def is_broadcast(self) -> bool:
        return self.iter_type == "broadcast"

    def __repr__(self) -> str:
        return f"<Loop %{self.tensor.name}.{self.name} {self.iter_type} {self.parallel_type.name}>"


class Tensor(_Named):
    """A tensor of the fusion. fd.sched has the same schedule methods, with the tensor as first argument."""

    @property
    def ndim(self) -> int:
        """Axes as an operation sees them, without reduced ones."""
        return len(self.fd.program.shape(self.value))

    @property
    def shape(self) -> list[int]:
        """Extents, with −1 for symbols. fd.ops.shape gives scalars."""
        return self.fd.program.shape(self.value)

    # -- schedule
    def loops(self) -> list[Loop]:
        return [Loop(self, i.name, i.iter_type, i.parallel) for i in self.fd.program.loops(self.name)]

    def axis(self, axis: int) -> Loop:
        loops = self.loops()
        axis = number(axis)  # type: ignore[assignment]
        if not isinstance(axis, int) or not -len(loops) <= axis < len(loops):
            raise FuseboxError("E0206", f"the tensor has {len(loops)} loops, and no loop {axis}", f"%{self.name}")
        return loops[axis]

    def step(self, kind: str, operands: Sequence[Word], results: Sequence[str] = (), **attributes: object) -> None:
        """Takes one step by its name in the step table, with domains as (tensor, loop)."""
        take_step(self.fd.program, kind, operands, results, attributes)

    def split(self, axis: int, factor: int | Scalar, inner_split: bool = True) -> None:
        """Into an outer and an inner loop. The inner one (the outer one without inner_split) has the factor as its extent."""
        loop = self.axis(axis).name
        by = step_word(factor, "a factor")
        outer: dict[str, object] = {} if flag(inner_split, "inner_split") else {"outer": 1}
        self.step("split", [(self.name, loop), by], self._fresh_loops(loop + "o", loop + "i"), **outer)

    def merge(self, axis: int, axis_inner: int | None = None) -> None:
        """Two loops into one. The inner one is the next loop, unless another is given."""
        outer = self.axis(axis).name
        inner = self.axis(axis_inner if axis_inner is not None else axis % len(self.loops()) + 1).name
        self.step("merge", [(self.name, outer), (self.name, inner)], self._fresh_loops(outer + inner))

    def reorder(self, old2new: Mapping[int, int]) -> None:
        """Moves loops to new places. The others keep their order in the places that are left."""
        if not isinstance(old2new, Mapping):
            raise FuseboxError("E0215", "reorder takes a dict of loops and their new places", repr(old2new))
        loops = [i.name for i in self.loops()]
        count = len(loops)
        places: dict[int, str] = {}
        for old, new in ((as_integer(old), as_integer(new)) for old, new in old2new.items()):
            is_there = old is not None and new is not None and -count <= old < count and -count <= new < count
            if not is_there or new % count in places or loops[old] in places.values():
                raise FuseboxError("E0206", "reorder wants each of these loops once, and a place of its own for each", f"%{self.name}")
            places[new % count] = loops[old]
        others = iter(name for name in loops if name not in places.values())
        self.step("reorder", [(self.name, ""), *((self.name, places.get(i) or next(others)) for i in range(count))])

    def swizzle(self, swizzle_type: SwizzleType, x: int, y: int) -> None:
        first, second = self.axis(x).name, self.axis(y).name
        names = self._fresh_loops(first + "s", second + "s")
        self.step("swizzle", [(self.name, first), (self.name, second)], names, swizzle=word(swizzle_type, SwizzleType))

    def rfactor(self, axes: Sequence[int]) -> Tensor:
        """Reduces these loops first, in a tensor of its own, which is returned."""
        return self._derived("rfactor", "_rf", [(self.name, ""), *((self.name, self.axis(a).name) for a in items(axes, "the argument axes"))])

    def parallelize(self, axis: int, parallel_type: ParallelType) -> None:
        self.axis(axis).parallelize(parallel_type)

    def cache_before(self, op_type: LoadStoreOpType = LoadStoreOpType.set) -> Tensor:
        """The new tensor is computed as this one was, and this one becomes its copy."""
        return self._derived("cache_before", "_cb", [(self.name, "")], **_copy(op_type))

    def cache_after(self, op_type: LoadStoreOpType = LoadStoreOpType.set, cache_op: CacheOp = CacheOp.unspecified) -> Tensor:
        """The new tensor is a copy of this one, and is read in its place."""
        return self._derived("cache_after", "_ca", [(self.name, "")], **_copy(op_type, cache_op))

    def cache_fork(self) -> Tensor:
        """For an output that is also read: the new tensor is the output."""
        return self._derived("cache_fork", "_cf", [(self.name, "")])

    def set_memory_type(self, memory_type: MemoryType) -> None:
        self.step("set_memory_type", [(self.name, "")], **{"in": word(memory_type, MemoryType)})

    def set_allocation(self, axes: Sequence[int], contiguity: Sequence[bool] | None = None) -> None:
        """The order in which these loops are laid out, outermost first."""
        given: dict[str, object] = {}
        if contiguity is not None:
            marks = [number(c) for c in items(contiguity, "a contiguity")]
            if not all(isinstance(m, int) for m in marks):
                raise FuseboxError("E0215", "a contiguity is a list of True and False", repr(contiguity))
            given["contiguity"] = [int(m) for m in marks]  # type: ignore[call-overload]
        self.step("set_allocation", [(self.name, ""), *((self.name, self.axis(a).name) for a in items(axes, "the argument axes"))], **given)

    def set_allocation_as_loop(self) -> None:
        self.set_allocation(range(len(self.loops())))

    def set_device_mesh(self, devices: Sequence[int]) -> None:
        self.step("set_mesh", [(self.name, "")], devices=integers(devices, "a device mesh"))

    def _fresh_loops(self, *wanted: str) -> list[str]:
        return [self.fd.program.fresh_loop(self.name, name) for name in wanted]

    def _derived(self, kind: str, suffix: str, operands: Sequence[Word], **attributes: object) -> Tensor:
        """Takes a step that makes a tensor, and gives that tensor."""
        name = self.fd.program.fresh_value(self.name + suffix)
        self.step(kind, operands, [name], **attributes)
        return Tensor(self.fd, self.fd.program.value_named(name))

    def __repr__(self) -> str:
        return f"<Tensor %{self.name} {self.dtype.name} {self.shape}>"


def _copy(op_type: LoadStoreOpType, cache_op: CacheOp = CacheOp.unspecified) -> dict[str, object]:
    attributes: dict[str, object] = {}
    if op_type is not LoadStoreOpType.set:
        attributes["copy"] = word(op_type, LoadStoreOpType)
    if cache_op is not CacheOp.unspecified:
        attributes["cache"] = word(cache_op, CacheOp)
    return attributes


Operand = Union[Tensor, Scalar, bool, int, float, complex]


def wrap(fd: Fusion, value: _fusebox.Value) -> Tensor | Scalar:
    return Tensor(fd, value) if value.is_tensor else Scalar(fd, value)


def number(value: object) -> object:
    """A number of NumPy as Python's number; anything else as it is."""
    is_numpy = any(base.__module__ == "numpy" and base.__name__ == "generic" for base in type(value).__mro__)
    return value.item() if is_numpy else value  # type: ignore[attr-defined]


def raw(operand: object) -> object:
    """The operand as the extension takes it."""
    if isinstance(operand, str):
        string(operand, "an operand")  # the extension refuses the others
    return operand.value if isinstance(operand, _Named) else number(operand)


def step_word(operand: object, what: str) -> Word:
    """An integer or a scalar as a step names it."""
    if isinstance(operand, Scalar):
        return operand.name, ""
    given = as_integer(operand)
    if given is not None:
        return given
    raise FuseboxError("E0215", f"{what} is an integer or a scalar", repr(operand))


def take_step(program: _fusebox.Program, kind: object, operands: object, results: object, attributes: dict[str, Any]) -> None:
    """Takes one step. E0215 for words and attributes of kinds that no step has."""
    try:
        program.step(string(kind, "a step's name"), items(operands, "the argument operands"), items(results, "the argument results"), attributes)
    except FuseboxError:
        raise
    except (TypeError, RuntimeError):  # the extension cannot read an argument
        message = "a step takes integers of 64 bits and (tensor, loop) as operands, names as results, and integers, strings or lists as attributes"
        raise FuseboxError("E0215", message, str(kind)) from None


def raw_tensor(operand: object) -> _fusebox.Value:
    if isinstance(operand, Tensor):
        return operand.value
    raise FuseboxError("E0215", "a tensor is needed here; ops.full makes one of a scalar", repr(operand))
