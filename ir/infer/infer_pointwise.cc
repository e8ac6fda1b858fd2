// Shape rules of pointwise ops, reductions and factories.
#include <algorithm>

#include "ir/infer/infer_rules.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace {

std::vector<OperandType> types_of(const InferContext& c) {
  std::vector<OperandType> types;
  for (ValueId v : c.operands)
    if (v) types.push_back({c.g[v].dtype, !c.g.is_tensor(v), c.g[v].name});
  return types;
}

// Whether the op takes only scalars here. The Euclidean ops compute extents and indices, and these are scalars.
bool scalars_only(const InferContext& c) {
  return c.g.level == Level::kKernel || c.g.level == Level::kHost || c.kind == OpKind::kFloorDiv ||
         c.kind == OpKind::kFloorMod || c.kind == OpKind::kCeilDiv || c.kind == OpKind::kWelfordCombine;
}

Dtype rounded_dtype(const InferContext& c, Dtype inferred) {
  const bool low = c.g.level == Level::kKernel || c.g.level == Level::kHost;
  if (!c.declared || *c.declared == inferred) return inferred;
  if (low && inferred != Dtype::kBool && !is_storage_only(*c.declared) &&
      (is_complex(*c.declared) || !is_complex(inferred)))
    return *c.declared;
  fail(c.g, ErrorCode::kDtypeMismatch,
       op_text(c.kind) + " gives " + std::string(text(inferred)) + " here, not " + std::string(text(*c.declared)) +
           "; cast its result instead",
       c.operand(0));
}

}  // namespace

std::vector<ResultSpec> infer_pointwise(InferContext& c) {
  if (c.kind == OpKind::kCast && !c.attrs.has(AttrKey::kDtypeAttr))
    fail(c.g, ErrorCode::kBadAttribute, "cast needs the attribute `as`, the dtype to cast to", c.operand(0));
  const Dtype dtype = rounded_dtype(c, result_dtype(c.kind, types_of(c), c.attrs, c.defects));
  std::vector<std::vector<Axis>> operands;
  std::vector<ValueId> places;
  for (ValueId v : c.operands) {
    if (!c.g.is_tensor(v)) continue;
    if (scalars_only(c))
      fail(c.g, ErrorCode::kWrongKind, op_text(c.kind) + " takes scalars here; load an element first", v);
    operands.push_back(axes_of(c, v));
    places.push_back(v);
    if (operands.back().size() != operands[0].size())
      fail(c.g, ErrorCode::kRankMismatch,
           "operands of " + op_text(c.kind) + " have ranks " + std::to_string(operands[0].size()) + " and " +
               std::to_string(operands.back().size()) + "; broadcast the one of lower rank first",
           v);
  }
  if (c.kind == OpKind::kWelfordCombine) {
    ResultSpec spec;
    spec.dtype = dtype;
    return {spec, spec, spec};
  }
  if (operands.empty()) {
    ResultSpec spec;
    spec.dtype = dtype;
    return {spec};
  }
  std::vector<Axis> axes;
  std::vector<Axis> meeting(operands.size());
  for (size_t i = 0; i < operands[0].size(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) meeting[k] = operands[k][i];
    axes.push_back(combine(c, meeting, places, i));
  }
  return {tensor_spec(c, dtype, std::move(axes))};
}

std::vector<ResultSpec> infer_reduction(InferContext& c) {
  const bool has_moments = is_moment(c.kind);
  std::vector<Axis> axes = axes_of(c, c.operands[0]);
  if (!c.attrs.has(AttrKey::kAxes))
    fail(c.g, ErrorCode::kBadAttribute, op_text(c.kind) + " needs the attribute `over`, the axes it reduces",
         c.operands[0]);
  const auto over = checked_axes(c, c.attrs.ints(AttrKey::kAxes), axes.size());
  if (!has_moments && over.empty())
    fail(c.g, ErrorCode::kBadAxis, op_text(c.kind) + " reduces no axis; name one, or use set", c.operands[0]);
  const OperandType operand{c.g[c.operands[0]].dtype, false, c.g[c.operands[0]].name};
  const Dtype dtype = result_dtype(c.kind, {&operand, 1}, c.attrs, c.defects);
  const std::vector<Dtype> moments = has_moments ? moment_dtypes(c.kind, dtype) : std::vector<Dtype>();
  // A welford with three operands merges averages, sums of squared differences and counts.
  const bool merges = has_moments && (c.operand(1) || c.operand(2));
  for (size_t i = 1; merges && i < moments.size(); ++i) {
    const ValueId v = c.operand(i);
    if (!v)
      fail(c.g, ErrorCode::kOperandCount, op_text(c.kind) + " takes one tensor, or all that it merges", c.operands[0]);
    if (rank_of(c.g, v) != axes.size())
      fail(c.g, ErrorCode::kRankMismatch,
           "the tensors that " + op_text(c.kind) + " merges have one rank; broadcast them first", v);
    if (c.g[v].dtype != moments[i])
      fail(c.g, ErrorCode::kDtypeMismatch,
           op_text(c.kind) + " merges a tensor of dtype " + std::string(text(moments[i])) + " here", v);
  }
  for (size_t i : over) {
    // A broadcast is reduced over its size: its element counts that many times.
    axes[i] = materialised(axes[i]);
    axes[i].type = IterType::kReduction;
  }
  std::vector<ResultSpec> results(has_moments ? moments.size() : 1, tensor_spec(c, dtype, std::move(axes)));
  for (size_t i = 0; i < moments.size(); ++i) results[i].dtype = moments[i];
  return results;
}

namespace {

// Operands: the two numbers of the distribution, seed, offset.
ResultSpec infer_random(InferContext& c) {
  const OperandType type{random_dtype(c.attrs), true};
  const Dtype dtype = result_dtype(c.kind, {&type, 1}, c.attrs);
  for (size_t i : {size_t{0}, size_t{1}})
    if (is_complex(c.g[c.operands[i]].dtype))
      fail(c.g, ErrorCode::kDtypeMismatch, op_text(c.kind) + " gives real numbers; give it two real numbers",
           c.operands[i]);
  for (size_t i : {size_t{2}, size_t{3}})
    if (!is_integer(c.g[c.operands[i]].dtype))
      fail(c.g, ErrorCode::kDtypeMismatch, "the seed and the offset of " + op_text(c.kind) + " are integers",
           c.operands[i]);
  std::vector<Axis> axes;
  const std::vector<ValueId> shape(c.slot(4).begin(), c.slot(4).end());
  for (ValueId v : shape) axes.push_back(axis_of_size(c.g, checked_size(c, v)));
  return tensor_spec(c, dtype, std::move(axes));
}

}  // namespace

ResultSpec infer_factory(InferContext& c) {
  if (is_random(c.kind)) return infer_random(c);
  // full has the fill's dtype by default, and iota i64.
  const ValueId fill = c.operands[0];
  const OperandType type =
      c.kind == OpKind::kFull ? OperandType{c.g[fill].dtype, true, c.g[fill].name} : OperandType{Dtype::kInt64, true};
  const Dtype dtype = result_dtype(c.kind, {&type, 1}, c.attrs);
  std::vector<Axis> axes;
  if (c.kind == OpKind::kFull) {
    const std::vector<ValueId> shape(c.slot(1).begin(), c.slot(1).end());
    for (ValueId v : shape) axes.push_back(axis_of_size(c.g, checked_size(c, v)));
    if (is_complex(c.g[c.operands[0]].dtype) && !is_complex(dtype))
      fail(c.g, ErrorCode::kDtypeMismatch, "full has a complex fill and a real dtype; give it a complex dtype",
           c.operands[0]);
  } else {
    if (is_boolean(dtype) || is_complex(dtype))
      fail(c.g, ErrorCode::kDtypeMismatch, "iota counts in an integer or floating dtype", c.operands[0]);
    for (size_t i : {size_t{1}, size_t{2}}) {
      const ValueId v = c.operand(i);
      if (v && (is_complex(c.g[v].dtype) || (is_floating(c.g[v].dtype) && !is_floating(dtype))))
        fail(c.g, ErrorCode::kDtypeMismatch, "iota counts in its dtype; give start and step of it", v);
    }
    // The only axis is an iteration even if its length is 1.
    Axis axis;
    axis.extent = checked_size(c, c.operands[0]);
    axes.push_back(axis);
  }
  return tensor_spec(c, dtype, std::move(axes));
}

}  // namespace fusebox
