// Finds the domains of a producer and its consumer that are the same position.
#include <algorithm>
#include <map>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/domain/joined_axis.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

// Whether the operand's axis is the same position as this axis of the result. With kWithin, both must have the same
// extent. With kRegrouped, the groups of the reshape must be known.
bool is_same_position(const Graph& g, AxisRelation relation, DomainId from, const Tensor& to, DomainId at) {
  const IterDomain &a = g[from], &b = g[at];
  if (relation == AxisRelation::kWithin)
    return a.extent && a.extent == b.extent && a.expanded == b.expanded && a.iter_type == b.iter_type;
  if (relation != AxisRelation::kRegrouped || !to.root.empty()) return true;
  return std::none_of(to.logical.begin(), to.logical.end(),
                      [&](DomainId d) { return g[d].iter_type == IterType::kSymbolic; });
}

// The domain before its resizes if `through_resize` is set, else the domain itself.
DomainId unresized(const Graph& g, DomainId d, bool through_resize) {
  while (through_resize && g[d].def && g[g[d].def].kind == TransformKind::kResize) d = g[g[d].def].inputs[0];
  return d;
}

class Matcher {
 public:
  Matcher(const Graph& g, const Tensor& producer, const Tensor& consumer, MatchOptions options)
      : g_(g), producer_(producer), consumer_(consumer), options_(options) {}

  std::vector<DomainPair> run(std::span<const DomainPair> axes) {
    for (DomainPair pair : axes) add(pair.producer, pair.consumer);
    for (DomainId d : producer_.loop_broadcasts)
      if (const DomainId to = stands_for(d, consumer_, false)) add(d, to);
    for (DomainId d : consumer_.loop_broadcasts)
      if (const DomainId from = stands_for(d, producer_, true)) add(from, d);
    for (TransformId t : producer_.transforms) follow(g_[t]);
    std::vector<DomainPair> result;
    const auto own = domains_of(producer_), others = domains_of(consumer_);
    for (DomainId d : own) {
      const auto it = map_.find(plain(d));
      if (it == map_.end()) continue;
      for (DomainId c : others)
        if (plain(c) == it->second) result.push_back({d, c});
    }
    return result;
  }

 private:
  DomainId plain(DomainId d) const { return unresized(g_, d, options_.through_resize); }

  void add(DomainId from, DomainId to) {
    const DomainId a = plain(from), b = plain(to);
    if (map_.contains(a) || std::any_of(map_.begin(), map_.end(), [&](const auto& m) { return m.second == b; })) return;
    map_.emplace(a, b);
  }

  bool is_matched(DomainId d, bool in_producer) const {
    if (in_producer) return map_.contains(plain(d));
    return std::any_of(map_.begin(), map_.end(), [&](const auto& m) { return m.second == plain(d); });
  }

  // The domain of the other tensor that a loop broadcast pairs with, or none.
  DomainId stands_for(DomainId d, const Tensor& other, bool other_is_producer) const {
    const DomainId like = g_[d].stands_for;
    if (!like) return {};
    if (g_[like].tensor == g_[other.value].tensor) return like;
    for (DomainId b : other.loop_broadcasts)
      if (g_[b].stands_for == like) return b;
    if (!options_.classes) return {};
    for (const auto* list : {&root_of(other), &other.loop_broadcasts})
      for (DomainId c : *list)
        if (!is_matched(c, other_is_producer) && options_.classes->same(like, c)) return c;
    return {};
  }

  void follow(const Transform& t) {
    if (options_.through_resize && t.kind == TransformKind::kResize) return;
    std::vector<DomainId> mapped;
    for (DomainId input : t.inputs) {
      const auto it = map_.find(plain(input));
      if (it == map_.end()) return;
      mapped.push_back(it->second);
    }
    for (TransformId id : consumer_.transforms) {
      const Transform& c = g_[id];
      if (!is_same_transform(t, c)) continue;
      bool is_same = true;
      for (size_t i = 0; i < mapped.size(); ++i) is_same = is_same && plain(c.inputs[i]) == mapped[i];
      if (!is_same) continue;
      for (size_t i = 0; i < t.outputs.size(); ++i) add(t.outputs[i], c.outputs[i]);
      return;
    }
  }

  std::vector<DomainId> domains_of(const Tensor& t) const {
    std::vector<DomainId> result = root_of(t);
    const auto include = [&](DomainId d) {
      if (position_in(result, d) == result.size()) result.push_back(d);
    };
    for (DomainId d : t.loop_broadcasts) include(d);
    for (DomainId d : t.logical) include(d);
    for (TransformId id : t.transforms)
      for (DomainId d : g_[id].outputs) include(d);
    return result;
  }

  const Graph& g_;
  const Tensor& producer_;
  const Tensor& consumer_;
  MatchOptions options_;
  std::map<DomainId, DomainId> map_;  // from domains of the producer to those of the consumer, all of them `plain`
};

}  // namespace

std::vector<DomainPair> map_producer_to_consumer(const Graph& g, OpId op_id, size_t operand, size_t result) {
  const Op& op = g[op_id];
  if (operand >= op.operands.size() || result >= op.results.size()) return {};
  const ValueId from = op.operands[operand], to = op.results[result];
  if (!from || !g.is_tensor(from) || !g.is_tensor(to)) return {};
  const auto axes = logical_without_reductions(g, g.tensor_of(from));
  const Tensor& t = g.tensor_of(to);
  std::vector<DomainPair> pairs;
  const auto& root = root_of(t);
  pairs.reserve(axes.size());
  const auto relation =
      axis_relation(rule_of(op.kind, op.operands.size(), operand).axes, op.attrs, axes.size(), root.size());
  for (size_t i = 0; i < axes.size(); ++i)
    if (relation[i].is_at_result() && is_same_position(g, relation[i].relation, axes[i], t, root[relation[i].result]))
      pairs.push_back({axes[i], root[relation[i].result]});
  return pairs;
}

std::vector<DomainPair> match_domains(const Graph& g, OpId op, size_t operand, size_t result, MatchOptions options) {
  const Op& o = g[op];
  if (operand >= o.operands.size() || result >= o.results.size()) return {};
  const ValueId from = o.operands[operand], to = o.results[result];
  if (!from || !g.is_tensor(from) || !g.is_tensor(to)) return {};
  auto axes = map_producer_to_consumer(g, op, operand, result);
  if (const auto joined = joined_axis(g, op, operand))
    if (const TransformId resize = joining_resize(g, g[from].tensor, *joined))
      axes.push_back({g[resize].outputs[0], joined->result});
  return match_domains(g, g[from].tensor, g[to].tensor, axes, options);
}

std::vector<DomainPair> match_domains(const Graph& g, TensorId a, TensorId b, std::span<const DomainPair> axes,
                                      MatchOptions options) {
  return Matcher(g, g[a], g[b], options).run(axes);
}

AxisClasses::AxisClasses(const Graph& g, AxisClassKind kind) : parent_(g.domains.size()) {
  for (uint32_t i = 0; i < parent_.size(); ++i) parent_[i] = i;
  const auto shortened = [&](uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  };
  const auto unite = [&](DomainId a, DomainId b) {
    const uint32_t x = shortened(a.index), y = shortened(b.index);
    parent_[std::max(x, y)] = std::min(x, y);
  };
  for (OpId id : ops_in_order(g)) {
    const Op& op = g[id];
    for (size_t r = 0; r < op.results.size(); ++r)
      for (size_t k = 0; k < op.operands.size(); ++k)
        for (DomainPair pair : map_producer_to_consumer(g, id, k, r))
          if (kind == AxisClassKind::kForwarded || !is_concretized(g, pair)) unite(pair.producer, pair.consumer);
  }
  for (size_t i = 0; i < g.domains.size(); ++i)
    if (kind == AxisClassKind::kForwarded && g.domains[i].stands_for) unite(DomainId(i), g.domains[i].stands_for);
  // A parent's index is at most its child's, so one pass makes every domain point at its class.
  for (uint32_t& parent : parent_) parent = parent_[parent];
}

}  // namespace fusebox
