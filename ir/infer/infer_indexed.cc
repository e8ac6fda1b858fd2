// Shape rules of cat and of ops that read or write where data say: select, index_select, gather, take_along_axis,
// scatter; triu.
#include "ir/infer/infer_rules.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace {

size_t axis_attr(const InferContext& c, size_t rank) {
  const AttrValue* v = c.attrs.find(AttrKey::kAxis);
  if (!v) fail(c.g, ErrorCode::kBadAttribute, op_text(c.kind) + " needs the attribute `axis`", c.operand(0));
  return checked_axis(c, std::get<int64_t>(*v), rank);
}

ResultSpec infer_cat(InferContext& c) {
  if (c.operands.empty()) fail(c.g, ErrorCode::kOperandCount, "cat needs at least one tensor", {});
  std::vector<OperandType> types;
  std::vector<std::vector<Axis>> parts;
  for (ValueId v : c.operands) {
    types.push_back({c.g[v].dtype, false, c.g[v].name});
    parts.push_back(axes_of(c, v));
    if (parts.back().size() != parts[0].size())
      fail(c.g, ErrorCode::kRankMismatch, "tensors of cat must have one rank; broadcast the others first", v);
  }
  const Dtype dtype = result_dtype(c.kind, types, c.attrs);
  const size_t axis = axis_attr(c, parts[0].size());
  std::vector<Axis> axes;
  for (size_t i = 0; i < parts[0].size(); ++i) {
    std::vector<Axis> meeting;
    for (const auto& p : parts) meeting.push_back(p[i]);
    if (i == axis) {
      std::optional<ScalarForm> sum = ScalarForm::of(0);
      for (const Axis& a : meeting) {
        sum = add(*sum, form_of(c.g, a.size()));
        if (!sum)
          fail(c.g, ErrorCode::kTooLarge, "cat joins more tensors of different extents than it can add up",
               c.operands[0]);
      }
      Axis joined;
      joined.extent = emit_form(c.g, c.place, *sum);
      axes.push_back(parts.size() == 1 ? meeting[0] : joined);
      continue;
    }
    Axis met = combine(c, meeting, c.operands, i);
    if (!met.is_broadcast() || met.expanded)
      for (size_t k = 0; k < meeting.size(); ++k)
        if (meeting[k].is_broadcast() && !meeting[k].expanded)
          fail(c.g, ErrorCode::kShapeMismatch,
               "cat does not stretch axis " + std::to_string(i) + "; expand this tensor first", c.operands[k]);
    axes.push_back(met);
  }
  return tensor_spec(c, dtype, std::move(axes));
}

// A tensor or scalar of integers.
void check_index(const InferContext& c, ValueId index) {
  if (!index) fail(c.g, ErrorCode::kOperandCount, op_text(c.kind) + " needs an index", c.operand(0));
  if (!is_integer(c.g[index].dtype))
    fail(c.g, ErrorCode::kDtypeMismatch, "the index of " + op_text(c.kind) + " must be of integers; cast it first",
         index);
}

void check_equal_ranks(const InferContext& c, size_t rank, ValueId other) {
  if (rank_of(c.g, other) != rank)
    fail(c.g, ErrorCode::kRankMismatch,
         op_text(c.kind) + " needs operands of one rank, here " + std::to_string(rank) + "; broadcast this one first",
         other);
}

void check_is_tensor(const InferContext& c, ValueId v) {
  if (!c.g.is_tensor(v))
    fail(c.g, ErrorCode::kWrongKind, op_text(c.kind) + " needs a tensor here; full makes one of a scalar", v);
}

ResultSpec infer_triu(InferContext& c) {
  const ValueId arg = c.operands[0];
  if (const ValueId diagonal = c.operand(1)) {
    if (c.g.is_tensor(diagonal)) fail(c.g, ErrorCode::kWrongKind, "the diagonal of triu is a scalar", diagonal);
    check_index(c, diagonal);
  }
  std::vector<Axis> axes = axes_of(c, arg);
  if (axes.size() < 2) fail(c.g, ErrorCode::kRankMismatch, "triu needs a tensor of rank 2 or more", arg);
  const OperandType type{c.g[arg].dtype, false, c.g[arg].name};
  // What was one element along these axes is not any more.
  for (size_t i = axes.size() - 2; i < axes.size(); ++i) axes[i] = materialised(axes[i]);
  return tensor_spec(c, result_dtype(c.kind, {&type, 1}), std::move(axes));
}

ResultSpec infer_scatter(InferContext& c) {
  const ValueId arg = c.operands[0], index = c.operands[1], src = c.operands[2];
  check_index(c, index);
  std::vector<Axis> axes = axes_of(c, arg);
  check_equal_ranks(c, axes.size(), index);
  check_equal_ranks(c, axes.size(), src);
  axis_attr(c, axes.size());
  if (c.g[src].dtype != c.g[arg].dtype)
    fail(c.g, ErrorCode::kDtypeMismatch, "scatter needs a source of the dtype of what it writes to; cast it first",
         src);
  for (Axis& a : axes)
    if (a.expanded) a = materialised(a);
  return tensor_spec(c, c.g[arg].dtype, std::move(axes));
}

}  // namespace

ResultSpec infer_indexed(InferContext& c) {
  if (c.kind == OpKind::kCat) return infer_cat(c);
  if (c.kind == OpKind::kTriu) return infer_triu(c);
  if (c.kind == OpKind::kScatter) return infer_scatter(c);
  const ValueId arg = c.operands[0], index = c.operand(1);
  check_index(c, index);
  // Of gather's source nothing but the rank counts: no extents of it are made that nothing reads.
  const std::vector<Axis> source = c.kind == OpKind::kGather ? std::vector<Axis>(rank_of(c.g, arg)) : axes_of(c, arg);
  const size_t axis = axis_attr(c, source.size());
  const std::vector<Axis> by = c.g.is_tensor(index) ? axes_of(c, index) : std::vector<Axis>();
  std::vector<Axis> axes;
  switch (c.kind) {
    case OpKind::kSelect:
      if (!by.empty())
        fail(c.g, ErrorCode::kRankMismatch, "select takes one index; index_select takes a tensor of them", index);
      axes = source;
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
      break;
    case OpKind::kIndexSelect:
      check_is_tensor(c, index);
      if (by.size() > 1) fail(c.g, ErrorCode::kRankMismatch, "index_select takes a tensor of rank 1 of indices", index);
      axes = source;
      axes[axis] = by.empty() ? broadcast_axis(c.g) : by[0];
      break;
    case OpKind::kGather:
      check_is_tensor(c, index);
      check_equal_ranks(c, source.size(), index);
      axes = by;
      // One index serves all of an expanded axis, but each place reads an element of its own there.
      for (size_t i = 0; i < axes.size(); ++i)
        if (i != axis && axes[i].expanded) axes[i] = materialised(axes[i]);
      break;
    case OpKind::kTakeAlongAxis:
      check_is_tensor(c, index);
      check_equal_ranks(c, source.size(), index);
      for (size_t i = 0; i < source.size(); ++i) {
        const Axis meeting[] = {source[i], by[i]};
        const ValueId places[] = {arg, index};
        axes.push_back(i == axis ? by[i] : combine(c, meeting, places, i));
      }
      break;
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_REDUCTION_OPS:
    case OpKind::kWelford:
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_PLACING_OPS:
    case FUSEBOX_STATEMENT_OPS:
      not_in_family(c.kind, "has no rule for an index");
  }
  return tensor_spec(c, c.g[arg].dtype, std::move(axes));
}

}  // namespace fusebox
