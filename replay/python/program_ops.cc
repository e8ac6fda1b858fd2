// Ops of a PythonProgram, over the builder.
#include "ir/build/composite.h"
#include "ir/infer/infer.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/python/program.h"

namespace fusebox::python {
namespace {

std::optional<Dtype> maybe_dtype(const std::optional<std::string>& name) {
  return name ? std::optional(dtype_named(*name)) : std::nullopt;
}

// How extents are computed by an op of their scalars. Planning follows sums and products of extents, and quotients of sizes
// that are rounded down, as these are: no size is negative.
std::optional<OpKind> op_of_extents(const Graph& g, OpKind kind, std::span<const ValueId> operands) {
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
      return kind;
    case OpKind::kDiv:
    case OpKind::kMod:
      if (!is_size_sum(g, operands[0]) || constant_integer(g, operands[1]).value_or(0) <= 0) return std::nullopt;
      return kind == OpKind::kDiv ? OpKind::kFloorDiv : OpKind::kFloorMod;
    default:  // any other: an op of 64-bit integers
      return std::nullopt;
  }
}

// The result of an op on extents and Python integers alone; nothing for other operands, or another op.
// `id` gives the id of a value.
template <class Id>
std::optional<ValueId> of_extents(Graph& g, OpKind kind, const Operands& operands, const Id& id) {
  std::vector<ValueId> ids;
  bool any_extent = false;
  for (const Operand& o : operands) {
    if (py::isinstance<Value>(o)) {
      ids.push_back(id(o));
      if (g.is_tensor(ids.back()) || g[ids.back()].dtype != Dtype::kIndex) return std::nullopt;
      any_extent = true;
    } else if (PyLong_Check(o.ptr()) && !PyBool_Check(o.ptr())) {
      const auto [dtype, bits] = number_of(o);
      const auto n = static_cast<int64_t>(bits.low);
      // Larger numbers are those of hashes and seeds, which wrap in 64 bits.
      if (dtype != Dtype::kInt64 || n < INT32_MIN || n > INT32_MAX) return std::nullopt;
      ids.push_back(constant_index(g, n));
    } else {
      return std::nullopt;
    }
  }
  if (!any_extent || ids.size() != 2) return std::nullopt;
  const auto op = op_of_extents(g, kind, ids);
  return op ? std::optional(scalar::make(g, Graph::body(), *op, ids)) : std::nullopt;
}

}  // namespace

Value PythonProgram::pointwise(const std::string& op, const Operands& operands) {
  const OpKind kind = op_named(op);
  const OpRow& row = row_of(kind);
  if (!row.at(Level::kMath) || (row.demands & Demand::kPointwise) == 0)
    throw Error(ErrorCode::kUnsupportedOp, "this op is not computed element by element; call it by its own function",
                op);
  if (operands.size() != static_cast<size_t>(row.format->slot_count))
    throw Error(ErrorCode::kOperandCount,
                "this op takes " + std::to_string(row.format->slot_count) + " operands, and " +
                    std::to_string(operands.size()) + " are given",
                op);
  Graph& g = open();
  if (const auto extent = of_extents(g, kind, operands, [&](const Operand& o) { return id(o); })) return wrap(*extent);
  // A Python float or complex beside tensors of a lower class gets the default width, as in torch.
  bool any_tensor = false, any_inexact = false;
  for (const Operand& o : operands) {
    if (!py::isinstance<Value>(o)) continue;
    const ValueId v = id(o);
    any_tensor |= g.is_tensor(v);
    any_inexact |= is_floating(g[v].dtype) || is_complex(g[v].dtype);
  }
  std::vector<ValueId> ids;
  for (const Operand& o : operands) {
    const bool is_number = !py::isinstance<Value>(o);
    if (is_number && any_tensor && !any_inexact && PyFloat_Check(o.ptr()))
      ids.push_back(default_number(o, Dtype::kFloat));
    else if (is_number && any_tensor && !any_inexact && PyComplex_Check(o.ptr()))
      ids.push_back(default_number(o, Dtype::kComplexFloat));
    else
      ids.push_back(id(o));
  }
  return wrap(fusebox::pointwise(g, kind, std::move(ids)));
}

Value PythonProgram::cast(const Operand& x, const std::string& dtype) {
  return wrap(fusebox::cast(open(), id(x), dtype_named(dtype)));
}

Value PythonProgram::reduce(const std::string& op, const Value& x, const Axes& axes, bool keepdim,
                            const std::optional<std::string>& dtype) {
  const ReductionOptions options{.keepdim = keepdim, .dtype = maybe_dtype(dtype), .name = {}};
  const OpKind kind = op_named(op);
  if ((kind == OpKind::kMax || kind == OpKind::kMin) && options.dtype) {
    const ValueId wide = fusebox::cast(open(), id(x), *options.dtype);
    return wrap(fusebox::reduce(graph, kind, wide, axes, {.keepdim = keepdim, .dtype = {}, .name = {}}));
  }
  return wrap(fusebox::reduce(open(), kind, id(x), axes, options));
}

Value PythonProgram::var(const Value& x, const Axes& axes, int64_t correction, bool keepdim) {
  return wrap(fusebox::var(open(), id(x), axes, {.correction = correction, .keepdim = keepdim, .name = {}}));
}
std::pair<Value, Value> PythonProgram::var_mean(const Value& x, const Axes& axes, int64_t correction, bool keepdim) {
  const VarMean r = fusebox::var_mean(open(), id(x), axes, {.correction = correction, .keepdim = keepdim, .name = {}});
  return {wrap(r.var), wrap(r.mean)};
}
std::vector<Value> PythonProgram::moments(const std::string& op, const Value& x, const Axes& axes) {
  const OpKind kind = op_named(op);
  Graph& graph = open();
  std::vector<Value> results;
  for (ValueId v : fusebox::moments(graph, kind, id(x), axes)) results.push_back(wrap(v));
  return results;
}

Value PythonProgram::broadcast(const Value& x, const std::vector<bool>& mask) {
  return wrap(fusebox::broadcast(open(), id(x), mask));
}

Value PythonProgram::shaped(const std::string& op, const Value& x, const Operands& shape, const Axes& dims) {
  Graph& g = open();
  const ValueId operand = id(x);
  const Shape to = extents(shape);
  switch (op_named(op)) {
    case OpKind::kReshape:
      return wrap(fusebox::reshape(g, operand, to));
    case OpKind::kExpand:
      return wrap(fusebox::expand(g, operand, to));
    case OpKind::kBroadcastInDim:
      return wrap(fusebox::broadcast_in_dim(g, operand, to, dims));
    default:  // any other: refused
      throw Error(ErrorCode::kUnsupportedOp, "this op takes no shape", op);
  }
}

Value PythonProgram::permute(const Value& x, const Axes& dims) { return wrap(fusebox::permute(open(), id(x), dims)); }
Value PythonProgram::squeeze(const Value& x, const Axes& axes, bool squeeze_expanded) {
  return wrap(fusebox::squeeze(open(), id(x), axes, {.squeeze_expanded = squeeze_expanded, .name = {}}));
}
Value PythonProgram::slice(const Value& x, const Operands& starts, const Operands& stops,
                           const std::optional<Operands>& by) {
  Graph& g = open();
  if (by && by->size() != starts.size())
    throw Error(ErrorCode::kRankMismatch,
                "slice is given " + std::to_string(starts.size()) + " starts and " + std::to_string(by->size()) +
                    " strides; give one of each for every axis",
                "%" + x.name);
  return wrap(fusebox::slice(g, id(x), extents(starts), extents(stops), by ? extents(*by) : Shape()));
}
Value PythonProgram::stride_order(const Value& x, const Axes& order) {
  return wrap(fusebox::stride_order(open(), id(x), order));
}

Value PythonProgram::full(const Operands& shape, const Operand& fill, const std::string& dtype) {
  Graph& g = open();
  const Shape to = extents(shape);
  const Dtype wanted = dtype_named(dtype);
  return wrap(fusebox::full(g, to, id(fill, wanted), wanted));
}
Value PythonProgram::iota(const Operand& length, const Operand& start, const Operand& step_, const std::string& dtype) {
  Graph& g = open();
  const Scalar count = extent(length);
  const ValueId from = start.is_none() ? ValueId() : id(start);
  const ValueId by = step_.is_none() ? ValueId() : id(step_);
  return wrap(fusebox::iota(g, count, from, by, dtype_named(dtype)));
}
Value PythonProgram::random(const std::string& op, const Operands& shape, const Operand& a, const Operand& b,
                            const Operand& seed, const Operand& offset, const std::string& dtype) {
  Graph& g = open();
  const OpKind kind = op_named(op);
  if (!is_random(kind)) throw Error(ErrorCode::kUnsupportedOp, "this op draws no random numbers", op);
  const Shape to = extents(shape);
  return wrap(fusebox::random(g, kind, to, id(a), id(b), id(seed), id(offset), dtype_named(dtype)));
}
Value PythonProgram::pad(const Value& x, const Operands& widths, const Operand& value) {
  Graph& g = open();
  const ValueId fill = value.is_none() ? ValueId() : id(value, g[id(x)].dtype);
  return wrap(fusebox::pad(g, id(x), extents(widths), fill));
}
Value PythonProgram::cat(const std::vector<Value>& tensors, int64_t axis) {
  Graph& g = open();
  std::vector<ValueId> ids;
  for (const Value& v : tensors) ids.push_back(id(v));
  return wrap(fusebox::cat(g, ids, axis));
}

Value PythonProgram::indexed(const std::string& op, const Value& x, const Operand& index, int64_t axis) {
  Graph& g = open();
  const OpKind kind = op_named(op);
  if (index_operand(kind) != size_t{1} || row_of(kind).format->slot_count != 2)
    throw Error(ErrorCode::kUnsupportedOp, "this op takes no index", op);
  const ValueId at = family_of(kind) == AxisRule::kSelected ? scalar_of(g, extent(index)) : id(index);
  Attrs attrs;
  attrs.set(AttrKey::kAxis, axis);
  return wrap(g[add_op(g, Graph::body(), kind, {id(x), at}, attrs)].results[0]);
}
Value PythonProgram::scatter(const Value& x, const Value& index, const Operand& src, int64_t axis) {
  Graph& g = open();
  ValueId source = id(src);
  if (!g.is_tensor(source)) {
    // One number for all places: expands it to the index's shape.
    Shape shape;
    for (size_t i = 0; i < rank_of(g, id(index)); ++i) shape.push_back(size_of(g, id(index), static_cast<int64_t>(i)));
    source = fusebox::full(g, shape, source, g[id(x)].dtype);
  }
  return wrap(fusebox::scatter(g, id(x), id(index), source, axis));
}
Value PythonProgram::triu(const Value& x, int64_t diagonal) { return wrap(fusebox::triu(open(), id(x), diagonal)); }
Value PythonProgram::embedding(const Value& indices, const Value& weight, const std::optional<double>& max_norm,
                               double norm_type) {
  return wrap(
      fusebox::embedding(open(), id(indices), id(weight), {.max_norm = max_norm, .norm_type = norm_type, .name = {}}));
}
std::vector<Value> PythonProgram::library(const std::string& op, const Operands& operands,
                                          const std::optional<int64_t>& axis, bool flag,
                                          const std::optional<std::string>& dtype) {
  Graph& g = open();
  const OpKind kind = op_named(op);
  const OpRow& row = row_of(kind);
  if (!demands(kind, kLibrary))
    throw Error(ErrorCode::kUnsupportedOp, "kernels compute this op; call it by its own function", op);
  std::vector<ValueId> ids;
  for (size_t i = 0; i < operands.size(); ++i) {
    // The scalar of topk is a number of elements, that of attention a factor.
    const bool is_extent = kind == OpKind::kTopk && i == 1;
    ids.push_back(operands[i].is_none() ? ValueId() : is_extent ? scalar_of(g, extent(operands[i])) : id(operands[i]));
  }
  Attrs attrs;
  if (axis) attrs.set(AttrKey::kAxis, *axis);
  if (dtype) attrs.set(AttrKey::kDtypeAttr, dtype_named(*dtype));
  for (AttrKey key : row.attrs)
    if (flag && row_of(key).kind == AttrKind::kBool) attrs.set_flag(key);
  std::vector<Value> results;
  for (ValueId v : g[add_op(g, Graph::body(), kind, std::move(ids), std::move(attrs))].results)
    results.push_back(wrap(v));
  return results;
}
Value PythonProgram::size(const Value& x, int64_t axis) { return wrap(size_of(open(), id(x), axis)); }

}  // namespace fusebox::python
