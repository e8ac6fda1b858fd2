// Which domains of a producer and its consumer are the same position.
#include <algorithm>
#include <map>

#include "ir/domain/domain.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

constexpr size_t kNoAxis = static_cast<size_t>(-1);

// For each axis of the operand, the position in the result's root domain; kNoAxis where there is none.
class AxisMap {
 public:
  AxisMap(const Graph& g, const Op& op, size_t operand, const std::vector<DomainId>& from, const Tensor& to)
      : g_(g), op_(op), operand_(operand), from_(from), to_(to), root_(root_of(to)), axes_(from.size(), kNoAxis) {}

  const std::vector<size_t>& run() {
    switch (op_.kind) {
      case OpKind::kBroadcast: {
        const auto mask = op_.attrs.ints(AttrKey::kMask);
        size_t next = 0;
        for (size_t i = 0; i < mask.size(); ++i)
          if (mask[i] == 0) set(next++, i);
        break;
      }
      case OpKind::kBroadcastInDim: {
        const auto dims = op_.attrs.ints(AttrKey::kDims);
        for (size_t i = 0; i < dims.size(); ++i) set(i, axis(dims[i], root_.size()));
        break;
      }
      case OpKind::kPermute: {
        const auto dims = op_.attrs.ints(AttrKey::kDims);
        for (size_t i = 0; i < dims.size(); ++i) set(axis(dims[i], from_.size()), i);
        break;
      }
      case OpKind::kSqueeze: {
        std::vector<bool> dropped(from_.size());
        for (int64_t a : op_.attrs.ints(AttrKey::kAxes))
          if (const size_t i = axis(a, from_.size()); i < from_.size()) dropped[i] = true;
        size_t next = 0;
        for (size_t i = 0; i < from_.size(); ++i)
          if (!dropped[i]) set(i, next++);
        break;
      }
      case OpKind::kReshape:
        // Axes of a reshape whose groups are not known yet have no place.
        if (to_.root.empty() && is_symbolic()) break;
        all_in_place();
        break;
      case OpKind::kCat:
        all_but(attr_axis());
        break;
      case OpKind::kSelect: {
        const size_t skipped = attr_axis();
        for (size_t i = 0; i < from_.size(); ++i)
          if (i != skipped) set(i, i < skipped ? i : i - 1);
        break;
      }
      case OpKind::kIndexSelect:
        if (operand_ == 0)
          all_but(attr_axis());
        else if (from_.size() == 1)
          set(0, attr_axis());
        break;
      case OpKind::kTakeAlongAxis:
        operand_ == 0 ? all_but(attr_axis()) : all_in_place();
        break;
      case OpKind::kGather:
        operand_ == 0 ? equal_but(attr_axis()) : all_in_place();
        break;
      case OpKind::kScatter:
        operand_ == 0 ? all_in_place() : equal_but(attr_axis());
        break;
      case FUSEBOX_SCALAR_OPS:
      case FUSEBOX_REDUCTION_OPS:
      case OpKind::kWelford:
      case OpKind::kWelfordCombine:
      case OpKind::kExpand:
      case OpKind::kSlice:
      case OpKind::kStrideOrder:
      case OpKind::kPad:
      case OpKind::kTriu:
      case OpKind::kFull:
      case OpKind::kIota:
        all_in_place();
        break;
      case FUSEBOX_STRUCTURE_OPS:
      case FUSEBOX_THREAD_OPS:
      case FUSEBOX_HOST_OPS:
        break;  // no axis of a statement's operand is one of its result
    }
    return axes_;
  }

 private:
  static size_t axis(int64_t a, size_t rank) { return static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a); }
  size_t attr_axis() const { return axis(op_.attrs.integer(AttrKey::kAxis), std::max(from_.size(), root_.size())); }
  bool is_symbolic() const {
    return std::any_of(root_.begin(), root_.end(), [&](DomainId d) { return g_[d].iter_type == IterType::kSymbolic; });
  }
  void set(size_t from, size_t to) {
    if (from < axes_.size() && to < root_.size()) axes_[from] = to;
  }
  void all_but(size_t skipped) {
    if (from_.size() != root_.size()) return;
    for (size_t i = 0; i < from_.size(); ++i)
      if (i != skipped) set(i, i);
  }
  void all_in_place() { all_but(kNoAxis); }
  void equal_but(size_t skipped) {
    if (from_.size() != root_.size()) return;
    for (size_t i = 0; i < from_.size(); ++i) {
      const IterDomain &a = g_[from_[i]], &b = g_[root_[i]];
      if (i != skipped && a.extent && a.extent == b.extent && a.iter_type == b.iter_type) set(i, i);
    }
  }

  const Graph& g_;
  const Op& op_;
  size_t operand_;
  const std::vector<DomainId>& from_;
  const Tensor& to_;
  const std::vector<DomainId>& root_;
  std::vector<size_t> axes_;
};

// Looks through resizes, if asked to.
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

  // The domain of the other tensor that a loop broadcast stands for, or none.
  DomainId stands_for(DomainId d, const Tensor& other, bool other_is_producer) const {
    const DomainId like = g_[d].like;
    if (!like) return {};
    if (g_[like].tensor == g_[other.value].tensor) return like;
    for (DomainId b : other.loop_broadcasts)
      if (g_[b].like == like) return b;
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
  std::map<DomainId, DomainId> map_;  // resizes looked through, if so asked
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
  AxisMap map(g, op, operand, axes, t);
  const std::vector<size_t>& places = map.run();
  pairs.reserve(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] != kNoAxis) pairs.push_back({axes[i], root_of(t)[places[i]]});
  return pairs;
}

std::vector<DomainPair> match_domains(const Graph& g, OpId op, size_t operand, size_t result, MatchOptions options) {
  const Op& o = g[op];
  if (operand >= o.operands.size() || result >= o.results.size()) return {};
  const ValueId from = o.operands[operand], to = o.results[result];
  if (!from || !g.is_tensor(from) || !g.is_tensor(to)) return {};
  return match_domains(g, g[from].tensor, g[to].tensor, map_producer_to_consumer(g, op, operand, result), options);
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
    if (kind == AxisClassKind::kForwarded && g.domains[i].like) unite(DomainId(i), g.domains[i].like);
  // A parent is never behind its child: one pass leads every domain to its class at once.
  for (uint32_t& parent : parent_) parent = parent_[parent];
}

}  // namespace fusebox
