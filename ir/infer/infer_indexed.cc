// Shape rules of cat, of triu, and of ops that read or write at places that an index gives: select, index_select,
// gather, take_along_axis, scatter. The rules of these indexed ops follow from the rules of their slots alone.
#include "ir/domain/axis_relation.h"
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

// The sum of the axes' extents. Where a form would have too many terms, a new form begins, and the sums are added.
ValueId sum_of(InferContext& c, const std::vector<Axis>& axes) {
  ValueId whole;
  const auto add_to_whole = [&](const ScalarForm& part) {
    const ValueId v = emit_form(c.g, c.place, part);
    whole = whole ? scalar::add(c.g, c.place, whole, v) : v;
  };
  ScalarForm sum = ScalarForm::of(0);
  for (const Axis& a : axes) {
    const ScalarForm extent = form_of(c.g, a.size());
    std::optional<ScalarForm> longer = add(sum, extent);
    if (!longer) add_to_whole(sum);
    sum = longer ? *std::move(longer) : extent;
  }
  add_to_whole(sum);
  return whole;
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
      Axis joined;
      joined.extent = sum_of(c, meeting);
      axes.push_back(parts.size() == 1 ? meeting[0] : joined);
      continue;
    }
    Axis met = combine(c, meeting, c.operands, i);
    if ((!met.is_broadcast() || met.expanded) && constant_integer(c.g, met.size()) != 1)
      for (size_t k = 0; k < meeting.size(); ++k)
        if (meeting[k].is_broadcast() && !meeting[k].expanded)
          fail(c.g, ErrorCode::kShapeMismatch,
               "cat does not stretch axis " + std::to_string(i) + "; expand this tensor first", c.operands[k]);
    axes.push_back(met);
  }
  return tensor_spec(c, dtype, std::move(axes));
}

// An index is a tensor or scalar of integers.
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
  // Elements along the last two axes differ, so these axes cannot be broadcasts.
  for (size_t i = axes.size() - 2; i < axes.size(); ++i) axes[i] = materialised(axes[i]);
  return tensor_spec(c, result_dtype(c.kind, {&type, 1}), std::move(axes));
}

// Whether an axis of the result is an iteration even if its operands repeat one element along it. An expanded axis of
// an index has one index, but each place reads an element of its own with it. Writing at places that an index gives
// changes single elements.
bool parts_elements(size_t operand, AxisRelation relation) {
  return relation == AxisRelation::kWithin || (relation == AxisRelation::kChosen && operand > 0);
}

// Checks an operand after the first against the rule of its slot.
void check_operand(const InferContext& c, size_t operand, size_t rank) {
  const ValueId v = c.operands[operand];
  const AxisRule rule = rule_of(c.kind, operand).axes;
  if (rule == AxisRule::kWhole) {
    if (c.g.is_tensor(v) && rank_of(c.g, v) != 0)
      fail(c.g, ErrorCode::kRankMismatch, op_text(c.kind) + " takes one index; index_select takes a tensor of them", v);
    return;
  }
  check_is_tensor(c, v);
  if (rule != AxisRule::kOnAxis) return check_equal_ranks(c, rank, v);
  if (rank_of(c.g, v) > 1)
    fail(c.g, ErrorCode::kRankMismatch, op_text(c.kind) + " takes a tensor of rank 1 of indices", v);
}

}  // namespace

ResultSpec infer_indexed(InferContext& c) {
  if (c.kind == OpKind::kCat) return infer_cat(c);
  if (c.kind == OpKind::kTriu) return infer_triu(c);
  const ValueId arg = c.operands[0];
  const size_t index = index_operand(c.kind).value_or(0);
  check_index(c, c.operand(index));
  const size_t rank = rank_of(c.g, arg);
  axis_attr(c, rank);
  for (size_t k = 1; k < c.operands.size(); ++k) {
    check_operand(c, k, rank);
    if (k != index && c.g[c.operands[k]].dtype != c.g[arg].dtype)
      fail(c.g, ErrorCode::kDtypeMismatch,
           op_text(c.kind) + " needs a source of the dtype of what it writes to; cast it first", c.operands[k]);
  }
  // Each axis of the result combines the operands' axes that are at its index. An operand whose axes decide nothing
  // emits no extents.
  struct Meeting {
    std::vector<Axis> axes;
    std::vector<ValueId> places;
    bool parts = false;
  };
  std::vector<Meeting> meetings(family_of(c.kind) == AxisRule::kSelected ? rank - 1 : rank);
  for (size_t k = 0; k < c.operands.size(); ++k) {
    const ValueId v = c.operands[k];
    if (!c.g.is_tensor(v)) continue;
    const AxisRule rule = rule_of(c.kind, k).axes;
    const auto relation = axis_relation(rule, c.attrs, rank_of(c.g, v), meetings.size());
    const std::vector<Axis> own = rule == AxisRule::kChosenWithin ? std::vector<Axis>() : axes_of(c, v);
    for (size_t i = 0; i < relation.size(); ++i) {
      if (relation[i].result == kNoAxis) continue;
      Meeting& meeting = meetings[relation[i].result];
      meeting.parts |= parts_elements(k, relation[i].relation);
      if (relation[i].relation != AxisRelation::kSame) continue;
      meeting.axes.push_back(own[i]);
      meeting.places.push_back(v);
    }
  }
  std::vector<Axis> axes;
  for (size_t i = 0; i < meetings.size(); ++i) {
    const Meeting& m = meetings[i];
    axes.push_back(m.axes.empty() ? broadcast_axis(c.g) : combine(c, m.axes, m.places, i));
    if (m.parts && axes.back().expanded) axes.back() = materialised(axes.back());
  }
  return tensor_spec(c, c.g[arg].dtype, std::move(axes));
}

}  // namespace fusebox
