"""What a fusion is made of: tensors, scalars, and the loops of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence, Union

from fusebox import _fusebox
from fusebox.enums import CacheOp, DataType, LoadStoreOpType, MemoryType, ParallelType, SwizzleType, word
from fusebox.errors import FuseboxError

if TYPE_CHECKING:
    from fusebox.definition import FusionDefinition


class _Named:
    def __init__(self, fd: FusionDefinition, value: _fusebox.Value) -> None:
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
    """A scalar of the fusion: an input, a size, a constant, or computed from those."""

    def __repr__(self) -> str:
        return f"<Scalar %{self.name} {self.dtype.name}>"


class Loop:
    """A loop of a tensor, as tensor.axis(i) gives it."""

    def __init__(self, tensor: Tensor, name: str, iter_type: str, parallel: str) -> None:
        self.tensor = tensor
        self.name = name
        self.iter_type = iter_type
        self.parallel_type = ParallelType(parallel)

    def parallelize(self, parallel_type: ParallelType) -> None:
        self.tensor.fd.sched.step("parallelize", [(self.tensor.name, self.name)], on=word(parallel_type, ParallelType))

    def is_reduction(self) -> bool:
        return self.iter_type == "reduce"

    def is_broadcast(self) -> bool:
        return self.iter_type == "broadcast"

    def __repr__(self) -> str:
        return f"<Loop %{self.tensor.name}.{self.name} {self.iter_type} {self.parallel_type.name}>"


class Tensor(_Named):
    """A tensor of the fusion. Its schedule methods are those of fd.sched, with the tensor as first argument."""

    @property
    def ndim(self) -> int:
        """Axes as an operation sees them, without reduced ones."""
        return len(self.fd.program.shape(self.value))

    @property
    def shape(self) -> list[int]:
        """Extents that are known, and −1 for symbols; fd.ops.shape gives scalars."""
        return self.fd.program.shape(self.value)

    # -- schedule
    def loops(self) -> list[Loop]:
        return [Loop(self, i.name, i.iter_type, i.parallel) for i in self.fd.program.loops(self.name)]

    def axis(self, axis: int) -> Loop:
        loops = self.loops()
        if not isinstance(axis, int) or not -len(loops) <= axis < len(loops):
            raise FuseboxError("E0206", f"the tensor has {len(loops)} loops, and no loop {axis}", f"%{self.name}")
        return loops[axis]

    def split(self, axis: int, factor: int | Scalar, inner_split: bool = True) -> None:
        self.fd.sched.split(self, axis, factor, inner_split)

    def merge(self, axis: int, axis_inner: int | None = None) -> None:
        self.fd.sched.merge(self, axis, axis_inner)

    def reorder(self, old2new: dict[int, int]) -> None:
        self.fd.sched.reorder(self, old2new)

    def swizzle(self, swizzle_type: SwizzleType, x: int, y: int) -> None:
        self.fd.sched.swizzle(self, swizzle_type, x, y)

    def rfactor(self, axes: Sequence[int]) -> Tensor:
        return self.fd.sched.rfactor(self, axes)

    def parallelize(self, axis: int, parallel_type: ParallelType) -> None:
        self.fd.sched.parallelize(self, axis, parallel_type)

    def cache_before(self, op_type: LoadStoreOpType = LoadStoreOpType.set) -> Tensor:
        return self.fd.sched.cache_before(self, op_type)

    def cache_after(self, op_type: LoadStoreOpType = LoadStoreOpType.set, cache_op: CacheOp = CacheOp.unspecified) -> Tensor:
        return self.fd.sched.cache_after(self, op_type, cache_op)

    def cache_fork(self) -> Tensor:
        return self.fd.sched.cache_fork(self)

    def set_memory_type(self, memory_type: MemoryType) -> None:
        self.fd.sched.set_memory_type(self, memory_type)

    def set_allocation_as_loop(self) -> None:
        self.fd.sched.set_allocation_as_loop(self)

    def set_device_mesh(self, devices: Sequence[int]) -> None:
        self.fd.sched.set_device_mesh(self, devices)

    def __repr__(self) -> str:
        return f"<Tensor %{self.name} {self.dtype.name} {self.shape}>"


Operand = Union[Tensor, Scalar, bool, int, float, complex]


def raw(operand: object) -> object:
    """What the extension takes for an operand."""
    return operand.value if isinstance(operand, _Named) else operand


def raw_tensor(operand: object) -> _fusebox.Value:
    if isinstance(operand, Tensor):
        return operand.value
    raise FuseboxError("E0215", "a tensor is needed here; ops.full makes one of a scalar", repr(operand))
