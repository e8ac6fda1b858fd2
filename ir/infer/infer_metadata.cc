// Shape rules of ops that move elements: broadcast, broadcast_in_dim, permute, expand, squeeze, slice, stride_order,
// pad.
#include <algorithm>
#include <complex>
#include <limits>

#include "ir/infer/infer_rules.h"
#include "ir/infer/slice_bound.h"
#include "ir/scalar/numeric.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace {

constexpr int64_t kToTheEnd = int64_t{1} << 62;  // a front end writes this or more for an open end of a slice

// The axis stretched to a size. −1 keeps the axis as it is.
Axis stretched(InferContext& c, const Axis& axis, ValueId size, size_t index) {
  if (constant_integer(c.g, size) == -1) return axis;
  const ValueId wanted = checked_size(c, size);
  const auto from = evaluate_integer(c.g, axis.size()), to = evaluate_integer(c.g, wanted);
  const bool same =
      axis.size() == wanted || (from && to ? *from == *to : form_of(c.g, axis.size()).equals(form_of(c.g, wanted)));
  if (same) return axis;
  if (axis.is_broadcast() && !axis.expanded) return broadcast_axis(c.g, wanted);
  const bool may_be_one = !from || *from == 1;
  if (!may_be_one && to)
    fail(c.g, ErrorCode::kShapeMismatch,
         op_text(c.kind) + " cannot make axis " + std::to_string(index) + " of extent " + std::to_string(*from) +
             " one of " + std::to_string(*to) + "; only an axis of extent 1 stretches",
         c.operand(0));
  Axis result;
  result.extent = wanted;
  // Whether a symbolic axis is stretched is not known before it is resolved, even if its size is.
  if (from == 1 && axis.type != IterType::kSymbolic) return broadcast_axis(c.g, wanted);
  // An extent that is known not to be 1 must equal the size. A size that resolving has fixed to 1 is known before the axes
  // that have it are resolved: such an axis may become a broadcast.
  const bool is_open = to != 1 || (!from && is_fixed_to_one(c.g, wanted));
  if (may_be_one) result.type = is_open ? IterType::kSymbolic : IterType::kIteration;
  return result;
}

ResultSpec infer_broadcast(InferContext& c) {
  const auto operand = axes_of(c, c.operands[0]);
  const auto mask = c.attrs.ints(AttrKey::kMask);
  std::vector<Axis> axes;
  size_t next = 0;
  for (int64_t m : mask) {
    if (m != 0 && m != 1)
      fail(c.g, ErrorCode::kBadAttribute, "the mask of broadcast has 1 at a new axis and 0 at an old one",
           c.operands[0]);
    if (m == 0 && next == operand.size()) break;
    axes.push_back(m == 1 ? broadcast_axis(c.g) : operand[next++]);
  }
  if (next != operand.size() || axes.size() != mask.size())
    fail(c.g, ErrorCode::kRankMismatch,
         "the mask of broadcast must have " + std::to_string(operand.size()) + " zeros, one for each axis",
         c.operands[0]);
  return tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
}

ResultSpec infer_broadcast_in_dim(InferContext& c) {
  const auto operand = axes_of(c, c.operands[0]);
  const std::vector<ValueId> shape(c.slot(1).begin(), c.slot(1).end());
  const auto dims = checked_axes(c, c.attrs.ints(AttrKey::kDims), shape.size());
  if (dims.size() != operand.size())
    fail(c.g, ErrorCode::kRankMismatch,
         "broadcast_in_dim names " + std::to_string(dims.size()) + " axes for a tensor of rank " +
             std::to_string(operand.size()) + "; name one for each",
         c.operands[0]);
  if (!std::is_sorted(dims.begin(), dims.end()))
    fail(c.g, ErrorCode::kBadAxis, "the axes of broadcast_in_dim must ascend; permute the tensor first", c.operands[0]);
  std::vector<Axis> axes;
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (next < dims.size() && dims[next] == i) {
      axes.push_back(stretched(c, operand[next], shape[i], i));
      ++next;
      continue;
    }
    if (is_one(c.g, shape[i]))
      axes.push_back(broadcast_axis(c.g));
    else
      axes.push_back(broadcast_axis(c.g, checked_size(c, shape[i])));
  }
  return tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
}

ResultSpec infer_expand(InferContext& c) {
  std::vector<Axis> axes = axes_of(c, c.operands[0]);
  const std::vector<ValueId> shape(c.slot(1).begin(), c.slot(1).end());
  if (shape.size() != axes.size())
    fail(c.g, ErrorCode::kRankMismatch,
         "expand has a shape of " + std::to_string(shape.size()) + " extents for a tensor of rank " +
             std::to_string(axes.size()) + "; broadcast it to that rank first",
         c.operands[0]);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = stretched(c, axes[i], shape[i], i);
  return tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
}

std::vector<size_t> checked_permutation(InferContext& c, AttrKey key, size_t rank) {
  const auto order = checked_axes(c, c.attrs.ints(key), rank);
  if (order.size() != rank)
    fail(c.g, ErrorCode::kBadAxis, op_text(c.kind) + " must name each of the " + std::to_string(rank) + " axes once",
         c.operands[0]);
  return order;
}

ResultSpec infer_permute(InferContext& c) {
  const auto operand = axes_of(c, c.operands[0]);
  std::vector<Axis> axes;
  for (size_t d : checked_permutation(c, AttrKey::kDims, operand.size())) axes.push_back(operand[d]);
  return tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
}

// order[i] is the rank of axis i's stride; the smallest stride has rank 0.
ResultSpec infer_stride_order(InferContext& c) {
  std::vector<Axis> axes = axes_of(c, c.operands[0]);
  const auto order = checked_permutation(c, AttrKey::kOrder, axes.size());
  std::vector<size_t> allocation(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) allocation[axes.size() - 1 - order[i]] = i;
  ResultSpec spec = tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
  if (!std::is_sorted(allocation.begin(), allocation.end())) spec.allocation = std::move(allocation);
  return spec;
}

ResultSpec infer_squeeze(InferContext& c) {
  const auto operand = axes_of(c, c.operands[0]);
  std::vector<bool> dropped(operand.size());
  if (c.attrs.ints(AttrKey::kAxes).empty() && c.defects.has(Defect::kSqueezeOfNone))
    for (size_t i = 0; i < operand.size(); ++i) dropped[i] = constant_integer(c.g, operand[i].size()) == 1;
  for (size_t i : checked_axes(c, c.attrs.ints(AttrKey::kAxes), operand.size())) {
    // bind_sizes checks an extent that is not known yet.
    if (constant_integer(c.g, operand[i].size()).value_or(1) != 1)
      fail(c.g, ErrorCode::kShapeMismatch,
           "squeeze drops axis " + std::to_string(i) +
               ", whose extent is not 1; reshape it, or select one element of it",
           c.operands[0]);
    dropped[i] = true;
  }
  std::vector<Axis> axes;
  for (size_t i = 0; i < operand.size(); ++i)
    if (!dropped[i]) axes.push_back(operand[i]);
  return tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
}

struct Bounds {
  ScalarForm start, stop;
};

// A scalar bound as a place in [0, extent]. It is first clamped to [−extent, extent], so that nothing overflows; then a
// negative bound counts from the end.
ScalarForm clamped(InferContext& c, ValueId v, ValueId extent) {
  const ValueId zero = constant_index(c.g, 0);
  const ValueId least = scalar::sub(c.g, c.place, zero, extent);
  const ValueId capped = scalar::minimum(c.g, c.place, scalar::cast(c.g, c.place, v, Dtype::kIndex), extent);
  const ValueId at = scalar::maximum(c.g, c.place, capped, least);
  const ValueId is_negative = scalar::lt(c.g, c.place, at, zero);
  const ValueId from_end = scalar::add(c.g, c.place, at, extent);
  return ScalarForm::atom(scalar::where(c.g, c.place, is_negative, from_end, at));
}

constexpr int kMaxBoundDepth = 8;  // nesting of quotients, minima and maxima

// Whether one sum of sizes is at most another for all sizes, because it is a part of the other, or a quotient, minimum
// or maximum of such parts.
bool is_at_most(const Graph& g, const ScalarForm& a, const ScalarForm& whole, int depth) {
  const auto rest = add(whole, a, -1);
  if (rest && is_size_sum(g, *rest)) return true;
  const bool is_single = a.constant == 0 && a.terms.size() == 1 && a.terms[0].factors.size() == 1;
  if (!is_single || depth == 0 || !g[a.terms[0].factors[0]].def) return false;
  const int64_t times = a.terms[0].coefficient;
  const Op& op = g[g[a.terms[0].factors[0]].def];
  const auto fits = [&](size_t i) { return is_at_most(g, form_of(g, op.operands[i]), whole, depth - 1); };
  if (op.kind == OpKind::kFloorDiv) return constant_integer(g, op.operands[1]).value_or(0) >= times && fits(0);
  if (op.kind == OpKind::kMinimum) return times == 1 && (fits(0) || fits(1));
  return op.kind == OpKind::kMaximum && times == 1 && fits(0) && fits(1);
}

// By its op, not by its form: `sub %n, 0` has the form of %n, and a rewrite may make it of a scalar that was clamped.
bool is_one_size(const Graph& g, ValueId bound) {
  const auto is_wide = [&](ValueId v) { return g[v].dtype == Dtype::kIndex || g[v].dtype == Dtype::kInt64; };
  const auto is_renamed = [&](ValueId v) {
    return g[v].def && g[g[v].def].kind == OpKind::kCast && is_wide(v) && is_wide(g[g[v].def].operands[0]);
  };
  while (is_renamed(bound)) bound = g[g[bound].def].operands[0];
  return g[bound].def && g[g[bound].def].kind == OpKind::kSize;
}

// Bounds as ATen has them: a negative bound counts from the end, each bound is clamped to [0, extent], and the stop is
// at least the start. Two kinds of bounds are not clamped, so that extents stay sums of sizes: a bound made of sizes
// that lies in [0, extent] for all sizes, and, without `clamps_sizes`, a bound that is one size. bind_sizes checks that
// the latter lies in the extent.
Bounds slice_bounds(InferContext& c, ValueId extent, ValueId start, ValueId stop, bool clamps_sizes) {
  Graph& g = c.g;
  const auto size = constant_integer(g, extent);
  const ScalarForm whole = form_of(g, extent);
  const auto bound = [&](ValueId v) -> ScalarForm {
    const auto k = constant_integer(g, v);
    if (!k) {
      if (!is_size_sum(g, v)) return clamped(c, v, extent);
      const ValueId index = scalar::cast(g, c.place, v, Dtype::kIndex);
      const ScalarForm form = form_of(g, index);
      if ((is_one_size(g, index) && !clamps_sizes) || is_at_most(g, form, whole, kMaxBoundDepth)) return form;
      return ScalarForm::atom(scalar::minimum(g, c.place, index, extent));
    }
    if (*k >= kToTheEnd) return whole;
    if (*k < 0 && c.defects.has(Defect::kSliceNegative)) return ScalarForm::of(0);
    if (size) return ScalarForm::of(std::clamp<int64_t>(*k < 0 ? *k + *size : *k, 0, *size));
    if (*k == 0) return ScalarForm::of(0);
    if (*k > 0) return ScalarForm::atom(scalar::minimum(g, c.place, constant_index(g, *k), extent));
    const ValueId from_end = scalar::sub(g, c.place, extent, constant_index(g, -std::max(*k, -kToTheEnd)));
    return ScalarForm::atom(scalar::maximum(g, c.place, from_end, constant_index(g, 0)));
  };
  Bounds b{bound(start), bound(stop)};
  // If the bounds cross, the slice is empty.
  if (b.start.is_constant() && b.stop.is_constant()) {
    b.stop.constant = std::max(b.start.constant, b.stop.constant);
    return b;
  }
  if (b.start.equals(ScalarForm::of(0)) || b.stop.equals(whole)) return b;
  const auto k = constant_integer(g, start), m = constant_integer(g, stop);
  if (k && m && (*k < 0) == (*m < 0)) {
    if (*k > *m) b.stop = b.start;
    return b;
  }
  const auto length = add(b.stop, b.start, -1);
  if (length && is_size_sum(g, *length)) return b;
  const ValueId low = emit_form(g, c.place, b.start), high = emit_form(g, c.place, b.stop);
  b.stop = ScalarForm::atom(scalar::maximum(g, c.place, low, high));
  return b;
}

Axis sliced(InferContext& c, const Axis& axis, ValueId start, ValueId stop, ValueId step) {
  for (ValueId v : {start, stop, step})
    if (!is_integer(c.g[v].dtype))
      fail(c.g, ErrorCode::kDtypeMismatch, "starts, stops and steps of slice are integers; cast them first", v);
  if (constant_integer(c.g, step) != 1)
    fail(c.g, ErrorCode::kUnsupportedOp, "a slice with a step other than 1 is not supported yet; take step 1",
         c.operand(0));
  const ValueId extent = axis.size();
  const Bounds b = slice_bounds(c, extent, start, stop, static_cast<bool>(axis.expanded));
  const ScalarForm whole = form_of(c.g, extent);
  if (axis.is_broadcast() && !axis.expanded && b.start.equals(ScalarForm::of(0)) && is_fixed_to_one(c.g, stop))
    return axis;
  if (b.start.equals(ScalarForm::of(0)) && b.stop.equals(whole)) return axis;
  if (axis.expanded) {
    // The slice repeats the same element.
    const auto length = add(b.stop, b.start, -1);
    if (length) return broadcast_axis(c.g, emit_form(c.g, c.place, *length));
  }
  Axis result = materialised(axis);
  const auto left = add(ScalarForm::of(0), b.start, -1), right = add(b.stop, whole, -1);
  if (!left || !right) fail(c.g, ErrorCode::kTooLarge, "the bounds of a slice are too large", c.operand(0));
  result.left = emit_form(c.g, c.place, *left);
  result.right = emit_form(c.g, c.place, *right);
  return result;
}

ResultSpec infer_slice(InferContext& c) {
  std::vector<Axis> axes = axes_of(c, c.operands[0]);
  const size_t rank = axes.size();
  for (size_t s : {1, 2, 3})
    if (c.slot(s).size() != rank)
      fail(c.g, ErrorCode::kRankMismatch,
           "slice needs a start, a stop and a step for each of the " + std::to_string(rank) + " axes, not " +
               std::to_string(c.slot(1).size()) + " starts, " + std::to_string(c.slot(2).size()) + " stops and " +
               std::to_string(c.slot(3).size()) + " steps",
           c.operands[0]);
  for (size_t i = 0; i < rank; ++i) axes[i] = sliced(c, axes[i], c.slot(1)[i], c.slot(2)[i], c.slot(3)[i]);
  return tensor_spec(c, c.g[c.operands[0]].dtype, std::move(axes));
}

// A complex constant without an imaginary part fills a real tensor with its real part.
ValueId real_fill(InferContext& c, Dtype tensor, ValueId fill) {
  const Dtype dtype = c.g[fill].dtype;
  if (is_complex(tensor) || !is_complex(dtype) || !c.g.is_constant(fill)) return fill;
  const std::complex<double> z = to_complex(dtype, *c.g[fill].constant);
  if (z.imag() != 0)
    fail(c.g, ErrorCode::kConstantRange,
         "pad fills " + std::string(text(tensor)) + " with a number that has an imaginary part; give its real part",
         c.operand(0));
  return constant(c.g, real_of(dtype), from_double(real_of(dtype), z.real()));
}

ResultSpec infer_pad(InferContext& c) {
  std::vector<Axis> axes = axes_of(c, c.operands[0]);
  const Dtype dtype = c.g[c.operands[0]].dtype;
  if (const ValueId fill = c.operand(1)) {
    c.operands[1] = real_fill(c, dtype, fill);
    check_fill(dtype, {c.g[c.operands[1]].dtype, true, c.g[c.operands[1]].name});
  }
  const std::vector<ValueId> widths(c.slot(2).begin(), c.slot(2).end());
  if (widths.size() % 2 != 0 || widths.size() > 2 * axes.size())
    fail(c.g, ErrorCode::kRankMismatch,
         "pad needs two widths for an axis, of at most " + std::to_string(axes.size()) + " axes", c.operands[0]);
  for (size_t i = 0; i + 1 < widths.size(); i += 2) {
    for (ValueId v : {widths[i], widths[i + 1]})
      if (!is_integer(c.g[v].dtype))
        fail(c.g, ErrorCode::kDtypeMismatch, "the widths of pad are integers; cast them first", v);
    Axis& axis = axes[axes.size() - 1 - i / 2];
    const auto left = constant_integer(c.g, widths[i]), right = constant_integer(c.g, widths[i + 1]);
    if (left == 0 && right == 0) continue;
    const auto size = constant_integer(c.g, axis.size());
    if (size && left && right && (__int128{*size} + *left + *right < 0))
      fail(c.g, ErrorCode::kBadAttribute, "pad cuts more than the " + std::to_string(*size) + " elements of an axis",
           c.operands[0]);
    axis = materialised(axis);
    axis.left = scalar::cast(c.g, c.place, widths[i], Dtype::kIndex);
    axis.right = scalar::cast(c.g, c.place, widths[i + 1], Dtype::kIndex);
  }
  return tensor_spec(c, dtype, std::move(axes));
}

}  // namespace

bool is_unclamped_bound(const Graph& g, ValueId bound, ValueId extent) {
  return is_one_size(g, bound) && !(extent && is_at_most(g, form_of(g, bound), form_of(g, extent), kMaxBoundDepth));
}

ResultSpec infer_metadata(InferContext& c) {
  switch (c.kind) {
    case OpKind::kBroadcast:
      return infer_broadcast(c);
    case OpKind::kBroadcastInDim:
      return infer_broadcast_in_dim(c);
    case OpKind::kExpand:
      return infer_expand(c);
    case OpKind::kPermute:
      return infer_permute(c);
    case OpKind::kStrideOrder:
      return infer_stride_order(c);
    case OpKind::kSqueeze:
      return infer_squeeze(c);
    case OpKind::kSlice:
      return infer_slice(c);
    case OpKind::kPad:
      return infer_pad(c);
    case OpKind::kReshape:
    case OpKind::kFull:
    case OpKind::kIota:
    case FUSEBOX_RANDOM_OPS:
    case OpKind::kTriu:
    case OpKind::kCat:
    case OpKind::kScatter:
    case FUSEBOX_INDEXED_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(c.kind, "has no rule for moved elements");
}

}  // namespace fusebox
