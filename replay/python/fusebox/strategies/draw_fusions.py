"""Strategies for fusions. Operations are drawn one by one from the compiled module's op table, each on existing values or on a new input,
so that every program verifies. The simplest choice is no operation, then one on the latest tensor."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from hypothesis import strategies as st

from fusebox.definition import FusionDefinition
from fusebox.enums import DataType
from fusebox.errors import FuseboxError
from fusebox.strategies.draw_tensors import Draw, dtypes_of, extents, shapes, table
from fusebox.values import Operand, Scalar, Tensor

INTERNAL = ("E0900", "E0421", "E0422")  # bugs of Fusebox itself: never taken for a refusal

# The families of operations, repeated by frequency, the simplest first.
_FAMILIES = ("pointwise", "pointwise", "pointwise", "pointwise", "reduction", "metadata", "metadata", "metadata", "cast", "indexed", "library", "other")


class DrawnFusion(FusionDefinition):
    """A FusionDefinition without steps. `shapes` holds the extents that it was drawn with, one shape for each input tensor, in order."""

    def __init__(self, name: str = "fusion", *, defects: Sequence[str] = ()) -> None:
        super().__init__(name, defects=defects)
        self.shapes: list[list[int]] = []

    def copy(self) -> DrawnFusion:
        other = super().copy()
        other.shapes = [list(s) for s in self.shapes]
        return other


@functools.cache
def op_names(family: str | None = None) -> tuple[str, ...]:
    """The operations that fusions are drawn from, in the order of the op table. Families: pointwise, cast, reduction, metadata (moves
    elements), indexed (by a tensor of indices), library (ATen alone computes them), other."""
    return tuple(name for name, (own, _, _) in table().items() if family in (None, own))


@st.composite
def fusions(
    draw: Draw,
    *,
    max_ops: int = 8,
    max_rank: int = 6,
    max_elements: int = 4096,
    ops: Sequence[str] | None = None,
    symbolic: bool = True,
    layouts: bool = True,
    in_place: bool = True,
    defects: Sequence[str] = (),
) -> DrawnFusion:
    """A fusion of up to `max_ops` operations on tensors of up to `max_rank` axes and `max_elements` elements.

    `ops` names the operations to draw from; the default is all of `op_names()`; E0201 for an unknown one. `symbolic` allows symbols as
    extents, `layouts` inputs that are not contiguous, `in_place` outputs that overwrite inputs. `defects` names seeded defects: rules that
    every compilation of the fusion breaks on purpose."""
    unknown = [name for name in ops or () if name not in table()]
    if unknown:
        raise FuseboxError("E0201", "no operation that makes tensors has this name; fusebox.strategies.op_names lists them", unknown[0])
    maker = _Maker(draw, max_rank, max_elements, symbolic, layouts, DrawnFusion(defects=defects))
    for _ in range(draw(st.integers(1, max_ops))):
        draw(_one_op(maker, None if ops is None else tuple(ops)))
    maker.add_outputs(in_place)
    return maker.fd


@st.composite
def _one_op(draw: Draw, maker: _Maker, ops: tuple[str, ...] | None) -> None:
    # The first choice adds nothing, so that shrinking can take out an operation in the middle of a program.
    if draw(st.integers(0, 9)) == 0:
        return
    names = ops if ops is not None else op_names(draw(st.sampled_from(_FAMILIES)))
    maker.attempt(draw(st.sampled_from(names)))


class _Maker:
    def __init__(self, draw: Draw, max_rank: int, max_elements: int, symbolic: bool, layouts: bool, fd: DrawnFusion) -> None:
        self.draw, self.fd = draw, fd
        self.max_rank, self.max_elements = max_rank, max_elements
        self.symbolic, self.layouts = symbolic, layouts
        self.made: list[Tensor] = []
        self.is_input: set[str] = set()
        self._extents: dict[str, list[int]] = {}

    # -- adding an operation, or leaving the program unchanged
    def attempt(self, name: str) -> bool:
        before = self.fd.program.copy(), len(self.fd.shapes), len(self.made)
        try:
            results = self.make(name)
            if all(self._is_small(t) for t in (*results, *self.made[before[2]:])):
                self.made += [t for t in results if isinstance(t, Tensor)]
                return bool(results)
        except FuseboxError as e:
            if e.code in INTERNAL:
                raise
        self.fd.program = before[0]
        del self.fd.shapes[before[1]:], self.made[before[2]:]
        return False

    def make(self, name: str) -> Sequence[Any]:
        family = table()[name][0]
        special: dict[str, Callable[[], Any]] = {
            "full": self._full, "iota": self._iota, "uniform": lambda: self._random("uniform"), "normal": lambda: self._random("normal"), "cat": self._cat, "pad": self._pad, "slice": self._slice, "reshape": self._reshape,
            "permute": self._permute, "stride_order": self._stride_order, "broadcast": self._broadcast, "squeeze": self._squeeze,
            "expand": self._expand, "broadcast_in_dim": self._broadcast_in_dim, "triu": self._triu, "select": self._select,
            "index_select": self._index_select, "scatter": self._scatter,
            "gather": lambda: self._gather("gather"), "take_along_axis": lambda: self._gather("take_along_axis"),
        }
        if name in special:
            made = special[name]()
        elif family == "pointwise":
            made = self._pointwise(name)
        elif family == "cast":
            made = self.fd.ops.cast(self.operand(name), self.draw(st.sampled_from(dtypes_of(None))))
        elif family == "reduction":
            made = self._reduce(name)
        elif family == "library":
            made = self._library(name)
        else:
            raise NotImplementedError(f"fusebox.strategies.fusions has no rule for the operation {name}")
        return made if isinstance(made, (list, tuple)) else [] if made is None else [made]

    def extents_of(self, t: Tensor) -> list[int]:
        return self.fd.program.extents_of(t.value, self.fd.shapes)

    def _is_small(self, t: Any) -> bool:
        if not isinstance(t, Tensor):
            return True
        shape = self.extents_of(t)  # raises E04.. if inputs that fit one by one do not fit together
        elements = 1
        for e in shape:
            elements *= max(e, 1)
        return len(shape) <= self.max_rank and elements <= self.max_elements

    # -- operands
    def new_input(self, dtype: DataType, shape: Sequence[int], broadcast: Sequence[bool] = ()) -> Tensor:
        """`broadcast` marks axes of extent 1 that stretch."""
        ones = list(broadcast) or [False] * len(shape)
        symbolic = self.symbolic and not self.draw(st.booleans())
        given = [1 if one else -1 if symbolic else e for e, one in zip(shape, ones)]
        order = list(range(len(shape)))
        gaps = False
        if self.layouts and shape:
            layout = self.draw(st.sampled_from(("contiguous", "contiguous", "contiguous", "gaps", "permuted")))
            gaps = layout == "gaps"
            if layout == "permuted" and len(shape) > 1:
                order = list(self.draw(st.permutations(order)))
        # A constant extent of 1 is a broadcast, which has no contiguity.
        marks = [None if given[axis] == 1 else not (gaps and self.draw(st.booleans())) for axis in order]
        places = [len(order) - 1 - order.index(axis) for axis in range(len(order))]
        t = self.fd.define_tensor(given, marks, dtype, False, places if order != sorted(order) else [])
        self.fd.shapes.append([1 if one else e for e, one in zip(shape, ones)])
        self.made.append(t)
        self.is_input.add(t.name)
        return t

    def operand(self, op: str, least_rank: int = 0) -> Tensor:
        """An operand that the op accepts: the latest tensors first, then a new input."""
        accepted = dtypes_of(op)
        fitting = [t for t in reversed(self.made) if t.dtype in accepted and t.ndim >= least_rank]
        at = self.draw(st.integers(0, min(len(fitting), 5))) if fitting else 0
        if at < len(fitting):
            return fitting[at]
        dtype = self.draw(st.sampled_from(accepted))
        shape = list(self.draw(shapes(min_rank=least_rank, max_rank=self.max_rank, max_elements=min(self.max_elements, 512))))
        return self.new_input(dtype, shape)

    def beside(self, t: Tensor, dtype: DataType, may_broadcast: bool = True) -> Tensor:
        """A new input with the extents of t, some of which may become broadcasts."""
        shape = self.extents_of(t)
        stretched = [a.iter_type == "broadcast" for a in self.fd.program.axes(t.value)]
        if may_broadcast and shape and self.draw(st.integers(0, 2)) == 2:
            stretched = [s or self.draw(st.booleans()) for s in stretched]
        return self.new_input(dtype, shape, stretched if may_broadcast else [False] * len(shape))

    def _fits(self, x: Tensor, y: Tensor) -> bool:
        """Whether axes, aligned to the right, have the same extent or are broadcasts."""
        a, b = ([(e, i.iter_type == "broadcast") for e, i in zip(self.extents_of(t), self.fd.program.axes(t.value))] for t in (x, y))
        return all(m == n or one or other for (m, one), (n, other) in zip(reversed(a), reversed(b)))

    def number(self, dtype: DataType) -> bool | int | float:
        if dtype is DataType.Bool:
            return self.draw(st.booleans())
        if dtype.value[0] in "iu":
            return self.draw(st.sampled_from((1, 2, 3, 0) if dtype.value[0] == "u" else (1, 2, 3, 0, -1)))
        return self.draw(st.sampled_from((1.0, 2.0, 3.0, 0.0, -1.0, -0.0, 0.5)))

    def partner(self, op: str, x: Tensor) -> Operand:
        """The other operand: x itself first."""
        accepted = dtypes_of(op)
        way = self.draw(st.sampled_from(("same", "earlier", "number", "input", "other dtype", "scalar")))
        if way == "number":
            return self.number(x.dtype)
        if way == "scalar":
            return self.fd.define_scalar(self.draw(st.sampled_from((x.dtype, *accepted))))
        if way == "earlier":
            fitting = [t for t in reversed(self.made) if t.dtype in accepted and self._fits(x, t)]
            return self.draw(st.sampled_from(fitting)) if fitting else x
        if way == "same":
            return x
        return self.beside(x, self.draw(st.sampled_from(accepted)) if way == "other dtype" else x.dtype)

    def axis_of(self, t: Tensor) -> int:
        """An axis, the last one first."""
        return t.ndim - 1 - self.draw(st.integers(0, t.ndim - 1))

    # -- families
    def _pointwise(self, op: str) -> Any:
        x = self.operand(op)
        operands: list[Operand] = [x]
        while len(operands) < table()[op][1]:
            operands.append(self.partner(op, x))
        if op == "where":
            conditions = [t for t in reversed(self.made) if t.dtype is DataType.Bool and self._fits(x, t)]
            operands = [conditions[0] if conditions and not self.draw(st.booleans()) else self.beside(x, DataType.Bool), operands[0], operands[1]]
        elif len(operands) == 2 and self.draw(st.booleans()):
            operands.reverse()
        return getattr(self.fd.ops, op)(*operands)

    def _reduce(self, op: str) -> Any:
        x = self.operand(op, 1)
        first = self.axis_of(x)
        axes = [i for i in range(x.ndim) if i == first or (x.ndim > 1 and self.draw(st.booleans()))]
        if op == "welford":
            return list(self.fd.ops.welford(x, axes))
        # An empty maximum has no value.
        if op in ("max", "min") and 0 in [self.extents_of(x)[i] for i in axes]:
            return None
        keepdim = self.draw(st.integers(0, 3)) == 3
        dtype = DataType.Null
        if op in ("sum", "prod") and self.draw(st.integers(0, 5)) == 5:
            dtype = self.draw(st.sampled_from(dtypes_of(op)))
        return getattr(self.fd.ops, op)(x, axes, keepdim, dtype)

    # -- operations that move elements
    def _reshape(self) -> Any:
        x = self.operand("reshape")
        shape = self.extents_of(x)
        way = self.draw(st.sampled_from(("flat", "merge", "split", "any")))
        sizes: list[int | Scalar] = list(self.fd.ops.shape(x)) if self.symbolic and self.draw(st.booleans()) else list(shape)
        if way == "flat" or not shape or 0 in shape:
            return self.fd.ops.reshape(x, [-1])
        at = self.axis_of(x)
        if way == "merge":
            if at + 1 == len(shape):
                at -= 1
            if at < 0:
                return self.fd.ops.reshape(x, [-1])
            return self.fd.ops.reshape(x, [*sizes[:at], shape[at] * shape[at + 1], *sizes[at + 2:]])
        divisors = [d for d in range(1, shape[at] + 1) if shape[at] % d == 0]
        by = self.draw(st.sampled_from(divisors[1:] + divisors[:1]))
        if way == "split":
            return self.fd.ops.reshape(x, [*sizes[:at], by, shape[at] // by, *sizes[at + 1:]])
        elements = 1
        for e in shape:
            elements *= e
        return self.fd.ops.reshape(x, [by, elements // by])

    def _permute(self) -> Any:
        x = self.operand("permute")
        return self.fd.ops.permute(x, self.draw(st.permutations(range(x.ndim))))

    def _stride_order(self) -> Any:
        x = self.operand("stride_order")
        return self.fd.ops.stride_order(x, self.draw(st.permutations(range(x.ndim))))

    def _broadcast(self) -> Any:
        x = self.operand("broadcast")
        mask = [False] * x.ndim
        for _ in range(1 + (self.draw(st.integers(0, 3)) == 3)):
            mask.insert(self.draw(st.integers(0, len(mask))), True)
        return self.fd.ops.broadcast(x, mask)

    def _broadcast_in_dim(self) -> Any:
        x = self.operand("broadcast_in_dim")
        sizes: list[int | Scalar] = list(self.fd.ops.shape(x))
        at = self.draw(st.integers(0, len(sizes)))
        sizes.insert(at, self.draw(st.integers(1, 4)))
        return self.fd.ops.broadcast_in_dim(x, sizes, [i for i in range(x.ndim + 1) if i != at])

    def _squeeze(self) -> Any:
        x = self.operand("squeeze")
        axes = [i for i, (a, e) in enumerate(zip(self.fd.program.axes(x.value), self.fd.program.expanded(x.value))) if a.iter_type == "broadcast" and not e]
        if axes:
            return self.fd.ops.squeeze(x, [self.draw(st.sampled_from(axes))])
        at = self.draw(st.integers(0, x.ndim))
        ones = self.fd.ops.broadcast(x, [i == at for i in range(x.ndim + 1)])
        return self.fd.ops.squeeze(ones, [at])

    def _expand(self) -> Any:
        x = self.operand("expand")
        free = [a.iter_type == "broadcast" and not e for a, e in zip(self.fd.program.axes(x.value), self.fd.program.expanded(x.value))]
        to = [self.draw(st.integers(1, 5)) if f else -1 for f in free]
        if not any(free) or self.draw(st.booleans()):
            to.insert(0, self.draw(st.integers(1, 4)))
        return self.fd.ops.expand(x, to)

    def _slice(self) -> Any:
        x = self.operand("slice")
        shape = self.extents_of(x)
        starts, stops = [], []
        for e in shape:
            start = self.draw(st.integers(0, min(e, 3)))
            stop = e - self.draw(st.integers(0, min(e - start, 3)))
            # As in ATen, indices may count from the end, lie beyond an end, or be crossed.
            if self.draw(st.integers(0, 3)) == 3:
                start = self.draw(st.integers(-e - 2, e + 2))
            if self.draw(st.integers(0, 3)) == 3:
                stop = self.draw(st.sampled_from((*range(-e - 2, e + 3), 2**63 - 1) if e < 50 else (e, -1, 2**63 - 1)))
            starts.append(start)
            stops.append(stop)
        return self.fd.ops.slice(x, starts, stops)

    def _pad(self) -> Any:
        x = self.operand("pad")
        widths = [self.draw(st.integers(0, 2)) for _ in range(2 * x.ndim)]
        if x.ndim and self.extents_of(x)[-1] > 0 and self.draw(st.integers(0, 5)) == 5:
            widths[1] = -1  # cuts
        return self.fd.ops.pad(x, widths, self.number(x.dtype) if self.draw(st.booleans()) else None)

    def _cat(self) -> Any:
        x = self.operand("cat", 1)
        axis = self.axis_of(x)
        parts = [x]
        for _ in range(self.draw(st.sampled_from((1, 1, 2, 0)))):
            if self.draw(st.booleans()):
                shape = self.extents_of(x)
                shape[axis] = self.draw(st.sampled_from((1, 2, 3, 5, 0)))
                ones = [i != axis and a.iter_type == "broadcast" for i, a in enumerate(self.fd.program.axes(x.value))]
                parts.append(self.new_input(x.dtype, shape, ones))
            else:
                parts.append(x)
        return self.fd.ops.cat(parts, axis)

    # -- operations that read at indices. The index is an input of its own; `inputs` keeps its values inside the axis.
    def _indexed(self, op: str) -> tuple[Tensor, int, list[int]] | None:
        x = self.operand(op, 1)
        axis = self.axis_of(x)
        shape = self.extents_of(x)
        return None if shape[axis] == 0 else (x, axis, shape)

    def _index_dtype(self) -> DataType:
        return self.draw(st.sampled_from((DataType.Int, DataType.Int32)))

    def _select(self) -> Any:
        if (given := self._indexed("select")) is None:
            return None
        x, axis, shape = given
        return self.fd.ops.select(x, self.draw(st.integers(-1, shape[axis] - 1)), axis)

    def _index_select(self) -> Any:
        if (given := self._indexed("index_select")) is None:
            return None
        x, axis, _ = given
        return self.fd.ops.index_select(x, self.new_input(self._index_dtype(), [self.draw(extents(9))]), axis)

    def _gather(self, op: str) -> Any:
        if (given := self._indexed(op)) is None:
            return None
        x, axis, shape = given
        shape[axis] = self.draw(extents(9))
        ones = [i != axis and a.iter_type == "broadcast" and not e for i, (a, e) in enumerate(zip(self.fd.program.axes(x.value), self.fd.program.expanded(x.value)))]
        return getattr(self.fd.ops, op)(x, self.new_input(self._index_dtype(), shape, ones), axis)

    def _scatter(self) -> Any:
        if (given := self._indexed("scatter")) is None:
            return None
        x, axis, shape = given
        shape[axis] = 1  # one source for each place: if there are several, any may win
        return self.fd.ops.scatter(x, self.new_input(self._index_dtype(), shape), self.new_input(x.dtype, shape), axis)

    # -- operations that ATen alone computes, with operands whose extents fit together
    def _library(self, name: str) -> Any:
        if name in ("sdpfa_fwd", "sdpfa_bwd"):
            return self._attention(name)
        if name == "grouped_mm":
            return self._grouped_mm()
        if name == "scaled_mm":
            return self._scaled_mm()
        x = self.operand(name, 1)
        shape, axis, flag = self.extents_of(x), self.axis_of(x), self.draw(st.booleans())
        if name == "matmul":
            return self.fd.ops.matmul(x, self.new_input(x.dtype, [shape[-1], *([self.draw(extents(5))] if flag else [])]))
        if name == "linear":
            n = self.draw(extents(5))
            return self.fd.ops.linear(x, self.new_input(x.dtype, [n, shape[-1]]), self.new_input(x.dtype, [n]) if flag else None)
        if name == "scatter_add":
            if shape[axis] == 0:
                return None
            shape[axis] = self.draw(extents(5))
            return self.fd.ops.scatter_add(x, self.new_input(self._index_dtype(), shape), self.new_input(x.dtype, shape), axis)
        if name == "index_put_accumulate":
            if shape[0] == 0:
                return None
            n = self.draw(extents(5))
            rows = self.new_input(x.dtype, [n, *shape[1:]])
            return self.fd.ops.index_put_accumulate(x, self.new_input(self._index_dtype(), [n]), rows)
        if name == "topk":
            return self.fd.ops.topk(x, self.draw(st.integers(0, shape[axis])), axis, flag)
        return self.fd.ops.argsort(x, axis, flag) if name == "argsort" else getattr(self.fd.ops, name)(x, axis)

    def _scaled_mm(self) -> Any:
        m, k, n = (self.draw(st.integers(1, 4)) for _ in range(3))
        a, b = (self.new_input(self.draw(st.sampled_from(dtypes_of("scaled_mm"))), shape) for shape in ([m, k], [k, n]))
        scale_a, scale_b = (self.new_input(DataType.Float, [extent] if self.draw(st.booleans()) else []) for extent in (m, n))
        return self.fd.ops.scaled_mm(a, b, scale_a, scale_b, self.new_input(DataType.BFloat16, [n]) if self.draw(st.booleans()) else None)

    def _grouped_mm(self) -> Any:
        dtype = self.draw(st.sampled_from(dtypes_of("grouped_mm")))
        m, k, n, groups = (self.draw(st.integers(1, 4)) for _ in range(4))
        step = self.draw(st.integers(0, m // groups))
        ends = self.fd.ops.iota(groups, step, step, DataType.Int32)
        return self.fd.ops.grouped_mm(self.new_input(dtype, [m, k]), self.new_input(dtype, [groups, k, n]), ends)

    def _attention(self, name: str) -> Any:
        if self.max_rank < 4:
            return None
        dtype = self.draw(st.sampled_from(dtypes_of(name)))
        n, h, length, keys, e, v = (self.draw(st.integers(1, 3)) for _ in range(6))
        query, key, value = (self.new_input(dtype, shape) for shape in ([n, h, length, e], [n, h, keys, e], [n, h, keys, v]))
        causal = self.draw(st.booleans())
        made = self.fd.ops.sdpfa_fwd(query, key, value, is_causal=causal)
        if name == "sdpfa_fwd":
            return made
        gradient = self.new_input(dtype, [n, h, length, v])
        return (*made, *self.fd.ops.sdpfa_bwd(gradient, query, key, value, *made, is_causal=causal))

    # -- operations that read no tensor, and the rest
    def _full(self) -> Any:
        dtype = self.draw(st.sampled_from(dtypes_of("full")))
        shape: list[int | Scalar] = list(self.draw(shapes(max_rank=min(3, self.max_rank), max_elements=256)))
        if self.made and self.draw(st.booleans()):
            shape = list(self.fd.ops.shape(self.made[-1]))
        return self.fd.ops.full(shape, self.number(dtype), dtype)

    def _iota(self) -> Any:
        dtype = self.draw(st.sampled_from(dtypes_of("iota")))
        start, step = (self.number(dtype) if self.draw(st.booleans()) else None for _ in range(2))
        return self.fd.ops.iota(self.draw(extents()), start, step or None, dtype)  # a step of 0 is not allowed

    def _random(self, name: str) -> Any:
        dtype = self.draw(st.sampled_from(dtypes_of(name)))
        shape: list[int | Scalar] = list(self.draw(shapes(max_rank=min(3, self.max_rank), max_elements=256)))
        if self.made and self.draw(st.booleans()):
            shape = list(self.fd.ops.shape(self.made[-1]))
        seed, offset = (self.draw(st.sampled_from((0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1))) for _ in range(2))
        return getattr(self.fd.ops, name)(self.number(dtype), self.number(dtype), shape, rng_seed=seed, rng_offset=offset, dtype=dtype)

    def _triu(self) -> Any:
        return self.fd.ops.triu(self.operand("triu", 2), self.draw(st.sampled_from((0, 1, -1, 2, -2, 3))))

    # -- outputs
    def add_outputs(self, in_place: bool) -> None:
        """Makes at most six tensors outputs that nothing reads, and at times one that is read."""
        if not any(t.name not in self.is_input for t in self.made):
            if not self.made:
                self.new_input(DataType.Float, list(self.draw(shapes(max_rank=min(2, self.max_rank), max_elements=min(256, self.max_elements)))))
            self.made.append(self.fd.ops.set(self.made[-1]))
        computed = [t for t in self.made if t.name not in self.is_input]
        outputs = [t for t in reversed(computed) if not self.fd.program.is_read(t.name)][:6]
        read = [t for t in computed if self.fd.program.is_read(t.name)]
        if read and self.draw(st.integers(0, 3)) == 3:
            outputs.append(self.draw(st.sampled_from(read)))
        free = [t for t in self.made if t.name in self.is_input]
        for t in outputs:
            fitting = [x for x in free if x.dtype is t.dtype and self.extents_of(x) == self.extents_of(t)]
            if in_place and fitting and self.draw(st.integers(0, 7)) == 7:
                saved = self.fd.program.copy()
                try:
                    self.fd.add_output(t, fitting[0])
                    free.remove(fitting[0])
                    continue
                except FuseboxError as e:
                    if e.code in INTERNAL:
                        raise
                    self.fd.program = saved
            self.fd.add_output(t)
