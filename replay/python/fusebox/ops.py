"""fd.ops: the operations of a fusion, with the names and argument orders that nvFuser's users know."""

from __future__ import annotations

from typing import Any, Sequence

from fusebox import _fusebox
from fusebox.enums import DataType, DtypeLike, dtype_word, dtype_word_or_none
from fusebox.errors import FuseboxError
from fusebox.fusion import Drawn, as_integer, as_integers, flag, integer
from fusebox.generators import blocks_of, signed
from fusebox.pointwise import Pointwise
from fusebox.values import Operand, Scalar, Tensor, raw, raw_tensor, wrap

Dims = int | Sequence[int] | None
Extents = Sequence[int | Scalar]


def _axes(given: object, what: str) -> list[int]:
    """One integer, or a list of them."""
    one = as_integer(given)
    numbers = as_integers(given) if one is None else [one]
    if numbers is None:
        raise FuseboxError("E0207", f"{what} is an integer or a list of them", repr(given))
    return numbers


def _real(given: object, what: str) -> float:
    try:
        if not isinstance(given, str):
            return float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass
    raise FuseboxError("E0215", f"{what} is a float or an integer", repr(given))


def _list(given: object, what: str) -> list[Any]:
    if isinstance(given, (list, tuple)):
        return list(given)
    raise FuseboxError("E0207", f"{what} is a list", repr(given))


def _raw_list(given: object, what: str) -> list[object]:
    return [raw(v) for v in _list(given, what)]


class Ops(Pointwise):
    """All operations: those here and those of pointwise.pyi. Operands are tensors, scalars and Python numbers in any mix."""

    # -- casts and reductions. Without `dims`, or with an empty list, all axes are reduced, as in torch. The second argument may be a dtype.
    def cast(self, arg: Operand, dtype: DtypeLike) -> Tensor | Scalar:
        return wrap(self._fd, self._fd.program.cast(raw(arg), dtype_word(dtype)))

    def sum(self, arg: Tensor, dims: Dims | DtypeLike = None, keepdim: bool = False, dtype: DtypeLike = DataType.Null) -> Tensor:
        return self._reduce("sum", arg, dims, keepdim, dtype)

    def prod(self, arg: Tensor, dims: Dims | DtypeLike = None, keepdim: bool = False, dtype: DtypeLike = DataType.Null) -> Tensor:
        return self._reduce("prod", arg, dims, keepdim, dtype)

    def max(self, arg: Tensor, dims: Dims | DtypeLike = None, keepdim: bool = False, dtype: DtypeLike = DataType.Null) -> Tensor:
        return self._reduce("max", arg, dims, keepdim, dtype)

    def min(self, arg: Tensor, dims: Dims | DtypeLike = None, keepdim: bool = False, dtype: DtypeLike = DataType.Null) -> Tensor:
        return self._reduce("min", arg, dims, keepdim, dtype)

    def var(self, arg: Tensor, dims: Dims = None, correction: int = 1, keepdim: bool = False) -> Tensor:
        return self._tensor(self._fd.program.var(raw_tensor(arg), self._dims(dims), integer(correction, "correction"), flag(keepdim, "keepdim")))

    def var_mean(self, arg: Tensor, dims: Dims = None, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        var, mean = self._fd.program.var_mean(raw_tensor(arg), self._dims(dims), integer(correction, "correction"), flag(keepdim, "keepdim"))
        return self._tensor(var), self._tensor(mean)

    def welford(self, arg: Tensor, dims: Dims = None) -> tuple[Tensor, Tensor, Tensor]:
        """(average, sum of squared differences, count)"""
        avg, var_sum, n = self._fd.program.moments("welford", raw_tensor(arg), self._dims(dims))
        return self._tensor(avg), self._tensor(var_sum), self._tensor(n)

    # -- metadata
    def broadcast(self, arg: Tensor, is_broadcast_dim: Sequence[bool]) -> Tensor:
        mask = [flag(b, "an element of is_broadcast_dim") for b in _list(is_broadcast_dim, "is_broadcast_dim")]
        return self._tensor(self._fd.program.broadcast(raw_tensor(arg), mask))

    def broadcast_in_dim(self, arg: Tensor, shape: Extents, broadcast_dims: Sequence[int]) -> Tensor:
        dims = _axes(broadcast_dims, "broadcast_dims")
        return self._tensor(self._fd.program.shaped("broadcast_in_dim", raw_tensor(arg), _raw_list(shape, "shape"), dims))

    def reshape(self, arg: Tensor, new_shape: Extents) -> Tensor:
        """One extent may be −1."""
        return self._tensor(self._fd.program.shaped("reshape", raw_tensor(arg), _raw_list(new_shape, "new_shape"), []))

    def permute(self, arg: Tensor, dims: Sequence[int]) -> Tensor:
        return self._tensor(self._fd.program.permute(raw_tensor(arg), _axes(dims, "dims")))

    def expand(self, arg: Tensor, shape: Extents) -> Tensor:
        """−1 keeps an extent."""
        return self._tensor(self._fd.program.shaped("expand", raw_tensor(arg), _raw_list(shape, "shape"), []))

    def squeeze(self, arg: Tensor, dims: int | Sequence[int], squeeze_expanded: bool = False) -> Tensor:
        """Drops these axes; none if the list is empty."""
        return self._tensor(self._fd.program.squeeze(raw_tensor(arg), _axes(dims, "dims"), flag(squeeze_expanded, "squeeze_expanded")))

    def slice(self, arg: Tensor, start_indices: Extents, end_indices: Extents, strides: Extents | None = None) -> Tensor:
        """A negative index counts from the end. An index beyond an end stops there. An end before its start leaves nothing."""
        starts, ends = _raw_list(start_indices, "start_indices"), _raw_list(end_indices, "end_indices")
        by = None if strides is None else _raw_list(strides, "strides")
        return self._tensor(self._fd.program.slice(raw_tensor(arg), starts, ends, by))

    def stride_order(self, arg: Tensor, stride_order: Sequence[int]) -> Tensor:
        """stride_order[i] is the place of axis i among the strides, 0 the smallest."""
        return self._tensor(self._fd.program.stride_order(raw_tensor(arg), _axes(stride_order, "stride_order")))

    # -- sizes
    def size(self, arg: Tensor, dim: int) -> Scalar:
        scalar = wrap(self._fd, self._fd.program.size(raw_tensor(arg), integer(dim, "dim")))
        assert isinstance(scalar, Scalar)
        return scalar

    def shape(self, arg: Tensor) -> list[Scalar]:
        return [self.size(arg, i) for i in range(len(self._fd.program.shape(raw_tensor(arg))))]

    # -- factories
    def full(self, shape: Extents, fill_value: Operand, dtype: DtypeLike) -> Tensor:
        return self._tensor(self._fd.program.full(_raw_list(shape, "shape"), raw(fill_value), dtype_word(dtype)))

    def iota(self, length: int | Scalar, start: Operand | None = None, step: Operand | None = None, dtype: DtypeLike = DataType.Int) -> Tensor:
        return self._tensor(self._fd.program.iota(raw(length), raw(start), raw(step), dtype_word(dtype)))

    # -- random numbers (generators.py). Element e, counted by rows, takes word e mod 4 of block rng_offset + e div 4 of Philox 4x32-10, so a
    # schedule changes no number. Without a seed, execute takes seed and offset from torch's generator, and record keeps them as inputs.
    def uniform(
        self,
        minval: Operand,
        maxval: Operand,
        shape: Extents,
        *,
        rng_seed: int | Scalar | None = None,
        rng_offset: int | Scalar | None = None,
        dtype: DtypeLike = DataType.Float,
    ) -> Tensor:
        """minval + (maxval − minval) u, with u in [0, 1); after rounding it may be maxval."""
        return self._random("uniform", shape, minval, maxval, rng_seed, rng_offset, dtype)

    def normal(
        self,
        mean: Operand,
        std: Operand,
        shape: Extents,
        *,
        rng_seed: int | Scalar | None = None,
        rng_offset: int | Scalar | None = None,
        dtype: DtypeLike = DataType.Float,
    ) -> Tensor:
        return self._random("normal", shape, mean, std, rng_seed, rng_offset, dtype)

    def rand_like(self, arg: Tensor, *, rng_seed: int | Scalar | None = None, rng_offset: int | Scalar | None = None) -> Tensor:
        """uniform in [0, 1) with the tensor's shape and dtype"""
        return self._random("uniform", self.shape(arg), 0.0, 1.0, rng_seed, rng_offset, arg.dtype)

    def randn_like(self, arg: Tensor, *, rng_seed: int | Scalar | None = None, rng_offset: int | Scalar | None = None) -> Tensor:
        """normal with mean 0 and standard deviation 1, and with the tensor's shape and dtype"""
        return self._random("normal", self.shape(arg), 0.0, 1.0, rng_seed, rng_offset, arg.dtype)

    # -- indexing
    def pad(self, arg: Tensor, pad_widths: Extents, value: Operand | None = None) -> Tensor:
        """Innermost axis first: before, after."""
        return self._tensor(self._fd.program.pad(raw_tensor(arg), _raw_list(pad_widths, "pad_widths"), raw(value)))

    def cat(self, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
        return self._tensor(self._fd.program.cat([raw_tensor(t) for t in _list(tensors, "tensors")], integer(dim, "dim")))

    def select(self, arg: Tensor, index: int | Scalar, dim: int) -> Tensor:
        return self._tensor(self._fd.program.indexed("select", raw_tensor(arg), raw(index), integer(dim, "dim")))

    def index_select(self, arg: Tensor, index: Tensor, dim: int) -> Tensor:
        return self._tensor(self._fd.program.indexed("index_select", raw_tensor(arg), raw_tensor(index), integer(dim, "dim")))

    def gather(self, arg: Tensor, index: Tensor, dim: int) -> Tensor:
        return self._tensor(self._fd.program.indexed("gather", raw_tensor(arg), raw_tensor(index), integer(dim, "dim")))

    def take_along_axis(self, arg: Tensor, index: Tensor, dim: int) -> Tensor:
        return self._tensor(self._fd.program.indexed("take_along_axis", raw_tensor(arg), raw_tensor(index), integer(dim, "dim")))

    def scatter(self, arg: Tensor, index: Tensor, src: Operand, dim: int) -> Tensor:
        return self._tensor(self._fd.program.scatter(raw_tensor(arg), raw_tensor(index), raw(src), integer(dim, "dim")))

    # -- ops that ATen alone computes, each in a segment of its own. Operands have one dtype, as in torch; E0204 otherwise, and cast helps. A
    # kernel that is scheduled by hand refuses them (E0321).
    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """torch.matmul: [..., m, k] and [..., k, n] give [..., m, n]; batches broadcast, and an operand of rank 1 is a row or a column whose new
        axis is dropped. Floats from f16 or complex. E0203 or E0407 if the k differ, E0205 without axes."""
        return self._library("matmul", [raw_tensor(a), raw_tensor(b)])[0]

    def linear(self, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
        """torch.nn.functional.linear: x [..., k], w [n, k] or [k], bias [n] or []. Errors as those of matmul."""
        return self._library("linear", [raw_tensor(x), raw_tensor(w), None if bias is None else raw_tensor(bias)])[0]

    def grouped_mm(self, mat1: Tensor, mat2: Tensor, offsets: Tensor) -> Tensor:
        """torch._grouped_mm: one product for each group. [m, k] and [g, k, n] give [m, n], [g, m, k] and [k, n] give [m, n], [m, k] and [k, n]
        give [g, m, n]. `offsets` [g] of Int32 has the end of each group of rows, columns, or k. What lies behind the last group is 0. Ends in
        no order, or beyond the axis, are E0419 when it runs."""
        return self._library("grouped_mm", [raw_tensor(mat1), raw_tensor(mat2), raw_tensor(offsets)])[0]

    def scaled_mm(
        self,
        mat1: Tensor,
        mat2: Tensor,
        scale1: Tensor,
        scale2: Tensor,
        bias: Tensor | None = None,
        dtype: DtypeLike = DataType.BFloat16,
    ) -> Tensor:
        """(mat1 · scale1) (mat2 · scale2) + bias of [m, k] and [k, n], 8-bit floats. A scale is of f32 and has no axes, or is [m] for mat1 and
        [n] for mat2. dtype is that of the result and of the bias [n]: Half, BFloat16 or Float."""
        operands = [raw_tensor(mat1), raw_tensor(mat2), raw_tensor(scale1), raw_tensor(scale2)]
        operands.append(None if bias is None else raw_tensor(bias))
        return self._library("scaled_mm", operands, dtype=dtype)[0]

    def cumsum(self, arg: Tensor, dim: int, dtype: DtypeLike = DataType.Null) -> Tensor:
        """Sums of the elements up to each. Integers and bool give Int; narrow floats are accumulated in Float."""
        return self._library("cumsum", [raw_tensor(arg)], integer(dim, "dim"), dtype=dtype)[0]

    def cumprod(self, arg: Tensor, dim: int, dtype: DtypeLike = DataType.Null) -> Tensor:
        """Products of the elements up to each, with the dtypes of cumsum."""
        return self._library("cumprod", [raw_tensor(arg)], integer(dim, "dim"), dtype=dtype)[0]

    def cummin(self, arg: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """(least element up to each, its index). The last of equal elements counts, and NaN is less than any."""
        values, indices = self._library("cummin", [raw_tensor(arg)], integer(dim, "dim"))
        return values, indices

    def cummax(self, arg: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """(largest element up to each, its index). The last of equal elements counts, and NaN is larger than any."""
        values, indices = self._library("cummax", [raw_tensor(arg)], integer(dim, "dim"))
        return values, indices

    def argsort(self, arg: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """The indices that sort along `dim`. Equal elements always keep their order, also without `stable`. NaN is the largest."""
        return self._library("argsort", [raw_tensor(arg)], integer(dim, "dim"), flag=flag(descending, "descending"))[0]

    def topk(self, arg: Tensor, k: int | Scalar, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
        """(the k largest or smallest elements, their indices), always sorted; equal elements keep their order. E0203 or E0407 if k is larger
        than the axis."""
        values, indices = self._library("topk", [raw_tensor(arg), raw(k)], integer(dim, "dim"), flag=flag(largest, "largest"))
        return values, indices

    def sdpfa_fwd(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout_p: float | None = None,
        is_causal: bool | None = None,
        scale: float | Scalar | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(softmax(scale · query keyᵀ) · value, the logarithm of each row's sum of exponentials) of query [n, h, l, e], key [n, h, s, e] and value
        [n, h, s, v]. scale is 1/√e by default; with is_causal query i sees keys 0 to i. E0212 with dropout: there is no mask to give back."""
        self._no_dropout("sdpfa_fwd", dropout_p)
        operands = [raw_tensor(query), raw_tensor(key), raw_tensor(value), raw(scale)]
        output, log_sumexp = self._library("sdpfa_fwd", operands, flag=flag(is_causal, "is_causal"))
        return output, log_sumexp

    def sdpfa_bwd(
        self,
        grad_output: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        output: Tensor,
        log_sumexp: Tensor,
        dropout_p: float | None = None,
        is_causal: bool | None = None,
        scale: float | Scalar | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of query, key and value. `output` and `log_sumexp` are what sdpfa_fwd gave for the same operands."""
        self._no_dropout("sdpfa_bwd", dropout_p)
        tensors = [raw_tensor(t) for t in (grad_output, query, key, value, output, log_sumexp)]
        dq, dk, dv = self._library("sdpfa_bwd", [*tensors, raw(scale)], flag=flag(is_causal, "is_causal"))
        return dq, dk, dv

    def index_put_accumulate(self, acc: Tensor, index: Tensor, value: Tensor) -> Tensor:
        """acc [v, ...] with row i of value [n, ...] added to its row index[i], in the order of i. E0419 for an index outside of acc."""
        return self._library("index_put_accumulate", [raw_tensor(acc), raw_tensor(index), raw_tensor(value)])[0]

    def scatter_add(self, arg: Tensor, index: Tensor, src: Tensor, dim: int) -> Tensor:
        """torch.scatter_add: arg with every element of src added along `dim` at the place that index has for it, always in the order of the
        index. index has the extents of src. E0419 for an index outside of arg."""
        return self._library("scatter_add", [raw_tensor(arg), raw_tensor(index), raw_tensor(src)], integer(dim, "dim"))[0]

    def embedding_fwd(
        self,
        input: Tensor,
        weight: Tensor,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float | None = None,
        scale_grad_by_freq: bool | None = None,
        sparse: bool | None = None,
    ) -> Tensor:
        """Rows of `weight`. padding_idx, scale_grad_by_freq and sparse concern only gradients and change nothing. With max_norm, a row whose
        norm_type-norm (2 by default) is larger is scaled down to it; torch does so to the weight itself, here the weight stays as it is."""
        norm = None if max_norm is None else _real(max_norm, "max_norm")
        p = 2.0 if norm_type is None else _real(norm_type, "norm_type")
        return self._tensor(self._fd.program.embedding(raw_tensor(input), raw_tensor(weight), norm, p))

    def triu(self, arg: Tensor, diagonal: int = 0) -> Tensor:
        return self._tensor(self._fd.program.triu(raw_tensor(arg), integer(diagonal, "diagonal")))

    # -- helpers
    def _library(
        self, op: str, operands: Sequence[object], axis: int | None = None, flag: bool = False, dtype: DtypeLike = DataType.Null
    ) -> list[Tensor]:
        made = self._fd.program.library(op, operands, axis, flag, dtype_word_or_none(dtype))
        return [self._tensor(v) for v in made]

    @staticmethod
    def _no_dropout(op: str, dropout_p: float | None) -> None:
        if flag(dropout_p, "dropout_p"):
            raise FuseboxError("E0212", f"{op} has no dropout; multiply its output by a mask of uniform", op)

    def _random(
        self,
        op: str,
        shape: Extents,
        a: Operand,
        b: Operand,
        seed: int | Scalar | None,
        offset: int | Scalar | None,
        dtype: DtypeLike,
    ) -> Tensor:
        if seed is None and offset is not None:
            raise FuseboxError("E0207", f"{op} has an offset and no seed; give rng_seed too, or neither", op)
        extents = _list(shape, "shape")
        is_drawn = seed is None
        if is_drawn:
            if self._fd.drawn is None:  # what is refused must leave no seed behind
                self._fd.program.copy().random(op, _raw_list(extents, "shape"), raw(a), raw(b), 0, 0, dtype_word(dtype))
            drawn = self._drawn()
            seed, offset = Scalar(self._fd, drawn.seed), Scalar(self._fd, drawn.next)
        words = [raw(self._word(w, what)) for w, what in ((seed, "rng_seed"), (0 if offset is None else offset, "rng_offset"))]
        made = self._tensor(self._fd.program.random(op, _raw_list(extents, "shape"), raw(a), raw(b), words[0], words[1], dtype_word(dtype)))
        if is_drawn:
            drawn.tensors.append(made.value)
            after = self.add(Scalar(self._fd, drawn.next), self._blocks(extents))
            self._fd.drawn = drawn._replace(next=after.value)
        return made

    def _drawn(self) -> Drawn:
        if self._fd.drawn is None:
            program = self._fd.program
            seed = program.define_scalar(program.fresh_value("rng_seed"), "i64")
            offset = program.define_scalar(program.fresh_value("rng_offset"), "i64")
            self._fd.drawn = Drawn(seed, offset, [], offset)
        return self._fd.drawn

    @staticmethod
    def _word(given: object, what: str) -> object:
        """A word of 64 bits: a scalar, or an integer modulo 2^64."""
        if isinstance(given, Scalar):
            return given
        return signed(int(given)) if isinstance(given, int) and not isinstance(given, bool) else integer(given, what)

    def _blocks(self, extents: list[Any]) -> Scalar | Tensor | int:
        """Four elements are a block; a part of one counts."""
        elements: Any = 1
        for e in extents:
            number = as_integer(e)
            known = isinstance(elements, int) and number is not None
            elements = elements * number if known else e if elements == 1 else self.mul(elements, e)  # type: ignore[operator]
        return blocks_of(elements) if as_integer(elements) is not None else self.div(self.add(elements, 3), 4)

    def _reduce(self, op: str, arg: Tensor, dims: object, keepdim: object, dtype: object) -> Tensor:
        if dims is not None and not isinstance(dims, (list, tuple)) and as_integer(dims) is None:
            dims, dtype = None, dims  # (arg, dtype)
        word = dtype_word_or_none(dtype)  # type: ignore[arg-type]
        return self._tensor(self._fd.program.reduce(op, raw_tensor(arg), self._dims(dims), flag(keepdim, "keepdim"), word))

    @staticmethod
    def _dims(dims: object) -> list[int]:
        return [] if dims is None else _axes(dims, "dims")

    def _tensor(self, value: _fusebox.Value) -> Tensor:
        return Tensor(self._fd, value)
