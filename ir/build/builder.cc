#include "ir/build/builder.h"

#include <algorithm>

#include "ir/build/one_place.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace {

ValueId append_one(Graph& g, OpKind kind, std::vector<ValueId> operands, Attrs attrs, std::string_view name) {
  return g[add_op(g, Graph::body(), kind, std::move(operands), std::move(attrs), {std::string(name)})].results[0];
}

std::vector<ValueId> values_of(Graph& g, const Shape& shape) {
  std::vector<ValueId> values;
  for (const Scalar& s : shape) values.push_back(scalar_of(g, s));
  return values;
}

void append_all(std::vector<ValueId>& to, const std::vector<ValueId>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Attrs ints_attr(AttrKey key, const Axes& axes) {
  Attrs attrs;
  attrs.set(key, axes);
  return attrs;
}

Attrs axis_attr(int64_t axis) {
  Attrs attrs;
  attrs.set(AttrKey::kAxis, axis);
  return attrs;
}

size_t rank_checked(const Graph& g, ValueId x) {
  if (!x || !g.is_tensor(x))
    throw Error(ErrorCode::kWrongKind, "a tensor is needed here; full makes one of a scalar", x ? "%" + g[x].name : "");
  return rank_of(g, x);
}

// The axes counted from 0, in ascending order. No axes means all axes.
Axes sorted_axes(const Graph& g, ValueId x, const Axes& axes) {
  const int64_t rank = static_cast<int64_t>(rank_checked(g, x));
  Axes result;
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i) result.push_back(i);
  for (int64_t a : axes) result.push_back(a < 0 && a >= -rank ? a + rank : a);
  std::sort(result.begin(), result.end());
  return result;
}

// Adds new axes in front, up to a rank.
ValueId raised(Graph& g, ValueId x, size_t rank) {
  const size_t own = rank_of(g, x);
  if (own >= rank) return x;
  std::vector<bool> mask(rank);
  for (size_t i = 0; i < rank - own; ++i) mask[i] = true;
  return broadcast(g, x, mask);
}

// Aligns ranks. Then an iteration axis of the constant extent 1, or over one place of a slice, becomes a broadcast if it
// meets another extent. A slice that ends before its place is then refused when sizes are bound.
void align(Graph& g, std::vector<ValueId>& operands) {
  size_t rank = 0;
  for (ValueId v : operands)
    if (g.is_tensor(v)) rank = std::max(rank, rank_of(g, v));
  for (ValueId& v : operands)
    if (g.is_tensor(v)) v = raised(g, v, rank);
  const auto axis_of = [&](ValueId v, size_t i) { return logical_without_reductions(g, g.tensor_of(v))[i]; };
  for (ValueId& v : operands) {
    if (!g.is_tensor(v)) continue;
    Axes units;
    for (size_t i = 0; i < rank; ++i) {
      const DomainId own = axis_of(v, i);
      const bool is_one = evaluate_size(g, own) == 1;
      if (g[own].iter_type != IterType::kIteration || (!is_one && !is_one_place(g, own))) continue;
      const bool meets = std::any_of(operands.begin(), operands.end(), [&](ValueId o) {
        return g.is_tensor(o) && evaluate_size(g, axis_of(o, i)) != 1 && (is_one || !is_one_place(g, axis_of(o, i)));
      });
      if (meets) units.push_back(static_cast<int64_t>(i));
    }
    if (units.empty()) continue;
    std::vector<bool> mask(rank);
    for (int64_t i : units) mask[static_cast<size_t>(i)] = true;
    v = broadcast(g, squeeze(g, v, units), mask);
  }
}

// A tensor without axes that meets tensors with axes counts as a scalar: it is cast to the dtype in which they meet.
void meet_as_scalars(Graph& g, OpKind kind, std::vector<ValueId>& operands) {
  const auto has_axes = [&](ValueId v) { return g.is_tensor(v) && rank_of(g, v) > 0; };
  const size_t first = kind == OpKind::kWhere ? 1 : 0;
  if (operands.size() < 2 || std::none_of(operands.begin(), operands.end(), has_axes)) return;
  std::vector<OperandType> types;
  for (size_t i = first; i < operands.size(); ++i)
    types.push_back({g[operands[i]].dtype, !has_axes(operands[i]), g[operands[i]].name});
  for (size_t i = first; i < operands.size(); ++i) {
    ValueId& v = operands[i];
    if (!g.is_tensor(v) || has_axes(v) || is_storage_only(g[v].dtype)) continue;
    const Dtype own = g[v].dtype, met = common_dtype(types);
    const bool is_held = own != Dtype::kUint64 && met != Dtype::kUint64 && !is_reduced_float(met) &&
                         !is_storage_only(met) && promote(own, met) == met;
    // An op on floats that has integer operands converts it to the dtype that it computes in, so it needs no cast.
    const auto computed = scalar_dtype(kind, types, i - first);
    const bool is_floating_op = computed && is_integer(met) && is_floating(*computed);
    if (own != met && !is_held && !is_floating_op && !is_storage_only(met)) v = cast(g, v, met);
  }
}

// An integer tensor that meets a tensor of 16-bit floats is rounded to their dtype, as in PyTorch. The op itself would
// convert it to the wider dtype in which it computes.
void meet_as_reduced_floats(Graph& g, OpKind kind, std::vector<ValueId>& operands) {
  const auto first = operands.begin() + (kind == OpKind::kWhere && !operands.empty() ? 1 : 0);
  const auto met = std::find_if(first, operands.end(), [&](ValueId v) {
    return g.is_tensor(v) && is_reduced_float(g[v].dtype) && !is_storage_only(g[v].dtype);
  });
  if (met == operands.end()) return;
  const Dtype dtype = g[*met].dtype;
  const auto is_other = [&](ValueId v) {
    return g.is_tensor(v) && g[v].dtype != dtype && !is_integer(g[v].dtype) && !is_boolean(g[v].dtype);
  };
  if (std::any_of(first, operands.end(), is_other)) return;
  for (auto v = first; v != operands.end(); ++v) {
    const Dtype own = g[*v].dtype;
    if (g.is_tensor(*v) && is_integer(own) && bits(own) - (is_signed(own) ? 1 : 0) > format_of(dtype).digits())
      *v = cast(g, *v, dtype);
  }
}

}  // namespace

Graph fusion(std::string_view name) {
  Graph g;
  g.name = std::string(name);
  return g;
}

ValueId scalar_of(Graph& g, const Scalar& s) { return s.value ? s.value : constant_index(g, s.number); }

ValueId constant_of(Graph& g, Dtype dtype, double value) { return constant(g, dtype, from_double(dtype, value)); }

ValueId unary(Graph& g, OpKind kind, ValueId x, std::string_view name) { return append_one(g, kind, {x}, {}, name); }
ValueId binary(Graph& g, OpKind kind, ValueId a, ValueId b, std::string_view name) {
  return pointwise(g, kind, {a, b}, name);
}
ValueId ternary(Graph& g, OpKind kind, ValueId a, ValueId b, ValueId c, std::string_view name) {
  return pointwise(g, kind, {a, b, c}, name);
}

ValueId pointwise(Graph& g, OpKind kind, std::vector<ValueId> operands, std::string_view name, Attrs attrs) {
  for (ValueId v : operands)
    if (!v || v.index >= g.values.size())
      throw Error(ErrorCode::kOperandCount, std::string(row_of(kind).text) + " lacks an operand that it needs");
  if (g.level == Level::kMath || g.level == Level::kScheduled) {
    meet_as_scalars(g, kind, operands);
    meet_as_reduced_floats(g, kind, operands);
    align(g, operands);
  }
  return append_one(g, kind, std::move(operands), std::move(attrs), name);
}

ValueId cast(Graph& g, ValueId x, Dtype dtype, std::string_view name) {
  Attrs attrs;
  attrs.set(AttrKey::kDtypeAttr, dtype);
  return append_one(g, OpKind::kCast, {x}, std::move(attrs), name);
}

ValueId reduce(Graph& g, OpKind kind, ValueId x, const Axes& axes, const ReductionOptions& options) {
  const size_t rank = rank_checked(g, x);
  if (rank == 0 && axes.empty()) {
    // The result is the one element, in the dtype that the reduction gives.
    const OperandType type{g[x].dtype, false, g[x].name};
    Attrs as;
    if (options.dtype) as.set(AttrKey::kDtypeAttr, *options.dtype);
    const Dtype dtype = result_dtype(kind, {&type, 1}, as);
    return dtype == g[x].dtype ? unary(g, OpKind::kSet, x, options.name) : cast(g, x, dtype, options.name);
  }
  const Axes over = sorted_axes(g, x, axes);
  Attrs attrs = ints_attr(AttrKey::kAxes, over);
  if (options.dtype) attrs.set(AttrKey::kDtypeAttr, *options.dtype);
  const ValueId reduced =
      append_one(g, kind, {x}, std::move(attrs), options.keepdim ? std::string_view() : options.name);
  if (!options.keepdim) return reduced;
  std::vector<bool> mask(rank);
  for (int64_t a : over) mask[static_cast<size_t>(a)] = true;
  return broadcast(g, reduced, mask, options.name);
}

ValueId sum(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& o) {
  return reduce(g, OpKind::kSum, x, axes, o);
}
ValueId prod(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& o) {
  return reduce(g, OpKind::kProd, x, axes, o);
}
ValueId max(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& o) {
  return reduce(g, OpKind::kMax, x, axes, o);
}
ValueId min(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& o) {
  return reduce(g, OpKind::kMin, x, axes, o);
}

std::vector<ValueId> moments(Graph& g, OpKind kind, ValueId x, const Axes& axes,
                             const std::vector<std::string>& names) {
  return g[add_op(g, Graph::body(), kind, {x}, ints_attr(AttrKey::kAxes, sorted_axes(g, x, axes)), names)].results;
}
WelfordResult welford(Graph& g, ValueId x, const Axes& axes, const std::vector<std::string>& names) {
  const std::vector<ValueId> results = moments(g, OpKind::kWelford, x, axes, names);
  return {results[0], results[1], results[2]};
}

ValueId broadcast(Graph& g, ValueId x, const std::vector<bool>& is_new_axis, std::string_view name) {
  return append_one(g, OpKind::kBroadcast, {x}, ints_attr(AttrKey::kMask, Axes(is_new_axis.begin(), is_new_axis.end())),
                    name);
}

ValueId broadcast_in_dim(Graph& g, ValueId x, const Shape& shape, const Axes& dims, std::string_view name) {
  std::vector<ValueId> operands = {x};
  append_all(operands, values_of(g, shape));
  return append_one(g, OpKind::kBroadcastInDim, std::move(operands), ints_attr(AttrKey::kDims, dims), name);
}

ValueId reshape(Graph& g, ValueId x, const Shape& shape, std::string_view name) {
  std::vector<ValueId> operands = {x};
  append_all(operands, values_of(g, shape));
  return append_one(g, OpKind::kReshape, std::move(operands), {}, name);
}

ValueId permute(Graph& g, ValueId x, const Axes& dims, std::string_view name) {
  return append_one(g, OpKind::kPermute, {x}, ints_attr(AttrKey::kDims, dims), name);
}

ValueId expand(Graph& g, ValueId x, const Shape& shape, std::string_view name) {
  rank_checked(g, x);
  std::vector<ValueId> operands = {raised(g, x, shape.size())};
  append_all(operands, values_of(g, shape));
  return append_one(g, OpKind::kExpand, std::move(operands), {}, name);
}

ValueId squeeze(Graph& g, ValueId x, const Axes& axes, const SqueezeOptions& options) {
  rank_checked(g, x);
  Axes over = axes.empty() ? Axes() : sorted_axes(g, x, axes);
  const auto domains = logical_without_reductions(g, g.tensor_of(x));
  for (size_t k = over.size(); k-- > 0;) {
    const size_t axis = static_cast<size_t>(over[k]);
    if (axis >= domains.size() || !g[domains[axis]].expanded) continue;
    if (!options.squeeze_expanded)
      throw Error(ErrorCode::kShapeMismatch,
                  "squeeze drops axis " + std::to_string(axis) + ", which is expanded; say so with squeeze_expanded",
                  "%" + g[x].name);
    // An expanded axis holds one element: select it.
    const bool is_last = over.size() == 1;
    x = select(g, x, constant_index(g, 0), over[k], is_last ? options.name : std::string_view());
    over.erase(over.begin() + static_cast<std::ptrdiff_t>(k));
    for (size_t j = k; j < over.size(); ++j) --over[j];
  }
  if (over.empty() && !axes.empty()) return x;
  return append_one(g, OpKind::kSqueeze, {x}, ints_attr(AttrKey::kAxes, over), options.name);
}

ValueId slice(Graph& g, ValueId x, const Shape& starts, const Shape& stops, const Shape& steps, std::string_view name) {
  const size_t rank = rank_checked(g, x);
  if (starts.size() != rank || stops.size() != rank || (steps.size() != rank && !steps.empty()))
    throw Error(ErrorCode::kRankMismatch,
                "slice needs a start, a stop and a step for each of the " + std::to_string(rank) + " axes, not " +
                    std::to_string(starts.size()) + " starts, " + std::to_string(stops.size()) + " stops and " +
                    std::to_string(steps.empty() ? rank : steps.size()) + " steps",
                "%" + g[x].name);
  std::vector<ValueId> operands = {x};
  append_all(operands, values_of(g, starts));
  append_all(operands, values_of(g, stops));
  append_all(operands, values_of(g, steps.empty() ? Shape(starts.size(), Scalar(1)) : steps));
  return append_one(g, OpKind::kSlice, std::move(operands), {}, name);
}

ValueId stride_order(Graph& g, ValueId x, const Axes& order, std::string_view name) {
  return append_one(g, OpKind::kStrideOrder, {x}, ints_attr(AttrKey::kOrder, order), name);
}

ValueId full(Graph& g, const Shape& shape, ValueId fill, Dtype dtype, std::string_view name) {
  std::vector<ValueId> operands = {fill};
  append_all(operands, values_of(g, shape));
  Attrs attrs;
  attrs.set(AttrKey::kDtypeAttr, dtype);
  return append_one(g, OpKind::kFull, std::move(operands), std::move(attrs), name);
}

ValueId iota(Graph& g, const Scalar& length, ValueId start, ValueId step, Dtype dtype, std::string_view name) {
  Attrs attrs;
  attrs.set(AttrKey::kDtypeAttr, dtype);
  return append_one(g, OpKind::kIota, {scalar_of(g, length), start, step}, std::move(attrs), name);
}

ValueId random(Graph& g, OpKind kind, const Shape& shape, ValueId a, ValueId b, ValueId seed, ValueId offset,
               Dtype dtype, std::string_view name) {
  std::vector<ValueId> operands = {a, b, seed, offset};
  append_all(operands, values_of(g, shape));
  Attrs attrs;
  attrs.set(AttrKey::kDtypeAttr, dtype);
  return append_one(g, kind, std::move(operands), std::move(attrs), name);
}

ValueId pad(Graph& g, ValueId x, const Shape& widths, ValueId value, std::string_view name) {
  std::vector<ValueId> operands = {x, value};
  append_all(operands, values_of(g, widths));
  return append_one(g, OpKind::kPad, std::move(operands), {}, name);
}

ValueId cat(Graph& g, const std::vector<ValueId>& tensors, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kCat, tensors, axis_attr(axis), name);
}
ValueId select(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kSelect, {x, index}, axis_attr(axis), name);
}
ValueId index_select(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kIndexSelect, {x, index}, axis_attr(axis), name);
}
ValueId gather(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kGather, {x, index}, axis_attr(axis), name);
}
ValueId take_along_axis(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kTakeAlongAxis, {x, index}, axis_attr(axis), name);
}
ValueId scatter(Graph& g, ValueId x, ValueId index, ValueId src, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kScatter, {x, index, src}, axis_attr(axis), name);
}
ValueId triu(Graph& g, ValueId x, int64_t diagonal, std::string_view name) {
  return append_one(g, OpKind::kTriu, {x, constant_index(g, diagonal)}, {}, name);
}

}  // namespace fusebox
