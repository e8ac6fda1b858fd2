#include "ir/domain/axis_relation.h"

#include <algorithm>

namespace fusebox {
namespace {

// Computes the relation of each axis under one rule.
class Relation {
 public:
  Relation(const Attrs& attrs, size_t operand_rank, size_t result_rank)
      : attrs_(attrs), rank_(operand_rank), result_rank_(result_rank), axes_(operand_rank) {}

  std::vector<OperandAxis> run(AxisRule rule) && {
    switch (rule) {
      case AxisRule::kWhole:
        break;
      case AxisRule::kSame:
        in_place(AxisRelation::kSame);
        break;
      case AxisRule::kReduced:
        in_place(AxisRelation::kSame);
        if (rank_ == result_rank_)
          for (int64_t a : attrs_.ints(AttrKey::kAxes))
            set(named_axis(a, rank_), named_axis(a, rank_), AxisRelation::kReduced);
        break;
      case AxisRule::kExpanded:
        in_place(AxisRelation::kBroadcast);
        break;
      case AxisRule::kResized:
        in_place(AxisRelation::kResized);
        break;
      case AxisRule::kRegrouped:
        in_place(AxisRelation::kRegrouped);
        break;
      case AxisRule::kMasked: {
        const auto mask = attrs_.ints(AttrKey::kMask);
        size_t next = 0;
        for (size_t i = 0; i < mask.size(); ++i)
          if (mask[i] == 0) set(next++, i, AxisRelation::kSame);
        break;
      }
      case AxisRule::kPlaced: {
        const auto dims = attrs_.ints(AttrKey::kDims);
        for (size_t i = 0; i < dims.size(); ++i) set(i, named_axis(dims[i], result_rank_), AxisRelation::kBroadcast);
        break;
      }
      case AxisRule::kPermuted: {
        const auto dims = attrs_.ints(AttrKey::kDims);
        for (size_t i = 0; i < dims.size(); ++i) set(named_axis(dims[i], rank_), i, AxisRelation::kSame);
        break;
      }
      case AxisRule::kSqueezed: {
        for (int64_t a : attrs_.ints(AttrKey::kAxes))
          if (const size_t i = named_axis(a, rank_); i < rank_) axes_[i].relation = AxisRelation::kDropped;
        size_t next = 0;
        for (size_t i = 0; i < rank_; ++i)
          if (axes_[i].relation != AxisRelation::kDropped) set(i, next++, AxisRelation::kSame);
        break;
      }
      case AxisRule::kJoined:
        in_place(AxisRelation::kSame);
        mark(AxisRelation::kJoined);
        break;
      case AxisRule::kSelected: {
        const size_t chosen = attr_axis();
        for (size_t i = 0; i < rank_; ++i)
          if (i != chosen) set(i, i < chosen ? i : i - 1, AxisRelation::kSame);
        if (chosen < rank_) axes_[chosen] = {AxisRelation::kChosen, kNoAxis};
        break;
      }
      case AxisRule::kChosen:
        in_place(AxisRelation::kSame);
        mark(AxisRelation::kChosen);
        break;
      case AxisRule::kChosenWithin:
        in_place(AxisRelation::kWithin);
        mark(AxisRelation::kChosen);
        break;
      case AxisRule::kOnAxis:
        if (rank_ == 1) set(0, attr_axis(), AxisRelation::kSame);
        break;
    }
    return std::move(axes_);
  }

 private:
  size_t attr_axis() const { return named_axis(attrs_.integer(AttrKey::kAxis), std::max(rank_, result_rank_)); }
  void set(size_t from, size_t to, AxisRelation relation) {
    if (from < rank_ && to < result_rank_) axes_[from] = {relation, to};
  }
  void in_place(AxisRelation relation) {
    for (size_t i = 0; rank_ == result_rank_ && i < rank_; ++i) axes_[i] = {relation, i};
  }
  void mark(AxisRelation relation) {
    const size_t axis = attr_axis();
    if (axis < rank_ && axes_[axis].result != kNoAxis) axes_[axis].relation = relation;
  }

  const Attrs& attrs_;
  size_t rank_, result_rank_;
  std::vector<OperandAxis> axes_;
};

}  // namespace

size_t named_axis(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::vector<OperandAxis> axis_relation(AxisRule rule, const Attrs& attrs, size_t operand_rank, size_t result_rank) {
  return Relation(attrs, operand_rank, result_rank).run(rule);
}

std::vector<OperandAxis> axis_relation(const Graph& g, const Op& op, size_t operand, size_t result) {
  if (operand >= op.operands.size() || result >= op.results.size()) return {};
  const ValueId from = op.operands[operand], to = op.results[result];
  if (!from || !g.is_tensor(from) || !g.is_tensor(to)) return {};
  const AxisRule rule = rule_of(op.kind, op.operands.size(), operand).axes;
  return axis_relation(rule, op.attrs, rank_of(g, from), root_of(g.tensor_of(to)).size());
}

bool reads_by_data(const Graph& g, const Op& op, size_t operand) {
  if (!demands(op.kind, kIndexed) || read_of(op.kind, operand) != Read::kData) return false;
  const auto index = index_operand(op.kind);
  const ValueId at = index && *index < op.operands.size() ? op.operands[*index] : ValueId();
  return at && g.is_tensor(at);
}

bool reads_by_data(const Graph& g, const Op& op) {
  if (!demands(op.kind, kIndexed)) return false;
  for (size_t k = 0; k < op.operands.size(); ++k)
    if (reads_by_data(g, op, k)) return true;
  return false;
}

}  // namespace fusebox
