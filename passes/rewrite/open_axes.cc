#include "passes/rewrite/open_axes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"

namespace fusebox {
namespace {

// The axis of the result that is made from this axis of its root, if it can be an expanded broadcast as the operand's is.
DomainId passed_on(const Op& op, const Tensor& t, OperandAxis at, size_t position) {
  const auto& root = root_of(t);
  // An axis that a reshape neither merges nor splits stays what it is.
  if (op.kind == OpKind::kReshape)
    return position < root.size() && position_in(t.logical, root[position]) < t.logical.size() ? root[position]
                                                                                               : DomainId();
  const bool is_at_result = at.relation == AxisRelation::kSame || at.relation == AxisRelation::kBroadcast ||
                            at.relation == AxisRelation::kResized;
  if (!is_at_result || at.result >= root.size()) return {};
  if (position_in(t.logical, root[at.result]) < t.logical.size()) return root[at.result];
  return op.kind == OpKind::kSlice ? t.logical[at.result] : DomainId();  // a pad adds elements
}

// An axis is an iteration if that of any operand is.
DomainId decider_of(DomainId axis, DomainId own, std::span<const std::pair<DomainId, DomainId>> given) {
  DomainId result;
  bool is_given = false;
  for (const auto& [to, decider] : given) {
    if (to != axis) continue;
    if (!decider) return {};
    result = !is_given || result == decider ? decider : axis;
    is_given = true;
  }
  return is_given ? result : own;
}

}  // namespace

OpenAxes::OpenAxes(const Graph& g) {
  decider_.resize(g.domains.size());
  for (OpId op : g[Graph::body()].ops) learn(g, op);
  learned_ = g.ops.size();
}

DomainId OpenAxes::decider(const Graph& g, DomainId axis) {
  decider_.resize(g.domains.size());
  for (; learned_ < g.ops.size(); ++learned_) learn(g, OpId(learned_));
  return decider_[axis.index];
}

void OpenAxes::learn(const Graph& g, OpId id) {
  const Op& op = g[id];
  const auto is_own = [&](DomainId d) {
    return (stretches(op.kind) || op.kind == OpKind::kReshape) && g[d].iter_type == IterType::kSymbolic;
  };
  for (size_t r = 0; r < op.results.size(); ++r) {
    if (!g.is_tensor(op.results[r])) continue;
    const Tensor& t = g.tensor_of(op.results[r]);
    is_any_ = is_any_ || std::ranges::any_of(t.logical, is_own);
    if (!is_any_) continue;
    std::vector<std::pair<DomainId, DomainId>> given;  // an axis of the result, and the decider of an operand's
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (!op.operands[k] || !g.is_tensor(op.operands[k])) continue;
      const auto axes = logical_without_reductions(g, g.tensor_of(op.operands[k]));
      const auto relation = axis_relation(g, op, k, r);
      for (size_t i = 0; i < axes.size() && i < relation.size(); ++i) {
        const DomainId to = passed_on(op, t, relation[i], i);
        if (!to || g[axes[i]].iter_type == IterType::kBroadcast) continue;
        if (is_own(to) && g[to].extent != g[axes[i]].extent) continue;
        given.emplace_back(to, decider_[axes[i].index]);
      }
    }
    for (DomainId d : t.logical) decider_[d.index] = decider_of(d, is_own(d) ? d : DomainId(), given);
  }
}

}  // namespace fusebox
