// Law: what is done to one tensor spreads over the edges that the plain definition gives. Of all edges from an op that
// is reached to one that is not, the next is the one that keeps the most of the first tensor's axes, and of equal ones
// the one from the op that was reached first. The definition tries all edges each time; `spread` must not.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_spread.h"
#include "ir/text/print.h"
#include "tests/support/random_fusion.h"

namespace fusebox {
namespace {

using testing::Random;
using Traced = std::map<DomainId, std::set<size_t>>;  // from a domain to the axes of the first tensor behind it

class PlainSpread {
 public:
  PlainSpread(const Graph& g, const SpreadOptions& options) : g_(g), options_(options) {}

  std::vector<SpreadEdge> run(TensorId first) {
    Traced traced;
    for (size_t i = 0; i < root_of(g_[first]).size(); ++i) traced[root_of(g_[first])[i]] = {i};
    reached_.push_back({op_of(first), through_own_transforms(first, traced), true});
    while (true) {
      std::vector<Edge> all;
      for (const Reached& r : reached_)
        if (r.goes_on) edges_from(r, all);
      const Edge* best = nullptr;
      for (const Edge& e : all)
        if (!best || e.kept > best->kept) best = &e;
      if (!best) return edges_;
      edges_.push_back(best->edge);
      const TensorId to = best->edge.to;
      reached_.push_back({op_of(to), through_own_transforms(to, best->traced),
                          !lists(options_.until, op_of(to)) && (options_.through_fixed || fixed_loops(g_, to) == 0)});
    }
  }

 private:
  struct Reached {
    OpId op;
    Traced traced;
    bool goes_on;
  };
  struct Edge {
    SpreadEdge edge;
    Traced traced;
    size_t kept;
  };

  OpId op_of(TensorId t) const { return g_[g_[t].value].def; }
  TensorId first_result(OpId op) const { return g_[g_[op].results[0]].tensor; }
  bool lists(std::span<const TensorId> list, OpId op) const {
    return std::any_of(list.begin(), list.end(), [&](TensorId t) { return op_of(t) == op; });
  }
  bool is_reached(OpId op) const {
    return std::any_of(reached_.begin(), reached_.end(), [&](const Reached& r) { return r.op == op; });
  }
  bool is_tensor_op(OpId op) const {
    return g_[op].kind != OpKind::kInput && !g_[op].results.empty() && g_.is_tensor(g_[op].results[0]);
  }
  bool is_given(ValueId v) const { return g_[g_[v].def].kind == OpKind::kInput; }

  Traced through_own_transforms(TensorId t, Traced traced) const {
    std::vector<TransformId> own = op_transforms(g_, g_[t]);
    const auto pass = [&](const std::vector<DomainId>& from, const std::vector<DomainId>& to) {
      std::set<size_t> all;
      for (DomainId d : from)
        if (traced.contains(d)) all.insert(traced[d].begin(), traced[d].end());
      if (!all.empty())
        for (DomainId d : to) traced[d].insert(all.begin(), all.end());
    };
    for (TransformId id : own) pass(g_[id].inputs, g_[id].outputs);
    std::reverse(own.begin(), own.end());
    for (TransformId id : own) pass(g_[id].outputs, g_[id].inputs);
    return traced;
  }

  // From the operand's axes to the result's; cat's joined axis counts as the same.
  std::vector<std::pair<DomainId, DomainId>> read_pairs(OpId id, size_t k) const {
    std::vector<std::pair<DomainId, DomainId>> pairs;
    for (DomainPair p : map_producer_to_consumer(g_, id, k)) pairs.emplace_back(p.producer, p.consumer);
    const Op& op = g_[id];
    if (op.kind != OpKind::kCat) return pairs;
    const auto from = logical_without_reductions(g_, g_.tensor_of(op.operands[k]));
    const auto& to = root_of(g_.tensor_of(op.results[0]));
    const int64_t axis = op.attrs.integer(AttrKey::kAxis);
    const size_t at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(to.size()) : axis);
    if (at < from.size() && at < to.size()) pairs.emplace_back(from[at], to[at]);
    return pairs;
  }

  void add(const Traced& traced, SpreadEdge edge, std::vector<Edge>& all) const {
    if (is_reached(op_of(edge.to)) || (!options_.only.empty() && !lists(options_.only, op_of(edge.to)))) return;
    Edge e{std::move(edge), {}, 0};
    std::set<size_t> kept;
    for (const auto& [a, b] : e.edge.axes.pairs)
      if (const auto it = traced.find(a); it != traced.end()) {
        e.traced[b].insert(it->second.begin(), it->second.end());
        kept.insert(it->second.begin(), it->second.end());
      }
    e.kept = kept.size();
    if (e.kept > 0) all.push_back(std::move(e));
  }

  void edges_from(const Reached& r, std::vector<Edge>& all) const {
    const Op& op = g_[r.op];
    for (ValueId result : op.results) {
      const TensorId s = g_[result].tensor;
      Traced own;
      for (const auto& [d, axes] : r.traced)
        if (const DomainId there = in_sibling(g_, s, d)) own[there].insert(axes.begin(), axes.end());
      if (result == op.results[0])
        for (size_t k = 0; k < op.operands.size(); ++k) {
          const ValueId v = op.operands[k];
          if (!v || !g_.is_tensor(v) || is_given(v)) continue;
          SpreadEdge e{s, g_[v].tensor, StandIn::kAnyAxis, {root_of(g_[s]), {}}};
          for (const auto& [a, b] : read_pairs(r.op, k)) e.axes.pairs.emplace_back(b, a);
          add(own, e, all);
        }
      for (OpId reader : g_[Graph::body()].ops)
        for (size_t k = 0; is_tensor_op(reader) && k < g_[reader].operands.size(); ++k)
          if (g_[reader].operands[k] == result)
            add(own, {s, first_result(reader), StandIn::kBroadcastAxis, {g_[s].logical, read_pairs(reader, k)}}, all);
    }
    const TensorId s = first_result(r.op);
    Traced own;
    for (const auto& [d, axes] : r.traced)
      if (const DomainId there = in_sibling(g_, s, d)) own[there].insert(axes.begin(), axes.end());
    for (ValueId input : std::set<ValueId>(op.operands.begin(), op.operands.end())) {
      if (!input || !g_.is_tensor(input) || !is_given(input)) continue;
      for (size_t j = 0; j < op.operands.size(); ++j)
        for (OpId reader : g_[Graph::body()].ops)
          for (size_t k = 0; is_tensor_op(reader) && k < g_[reader].operands.size(); ++k) {
            if (op.operands[j] != input || g_[reader].operands[k] != input || reader == r.op) continue;
            SpreadEdge e{s, first_result(reader), StandIn::kAnyAxis, {root_of(g_[s]), {}}};
            for (const auto& [x, a] : read_pairs(r.op, j))
              for (const auto& [y, b] : read_pairs(reader, k))
                if (x == y) e.axes.pairs.emplace_back(a, b);
            add(own, e, all);
          }
    }
    for (const auto& [inputs, at] : reads_of_two(r.op))
      for (OpId reader : g_[Graph::body()].ops) {
        if (reader == r.op || !is_tensor_op(reader)) continue;
        const auto others = reads_of_two(reader);
        const auto there = others.find(inputs);
        if (there == others.end()) continue;
        SpreadEdge e{s, first_result(reader), StandIn::kAnyAxis, {root_of(g_[s]), {}}};
        for (const auto& [j, k] : {std::pair(at.first, there->second.first), {at.second, there->second.second}})
          for (const auto& [x, a] : read_pairs(r.op, j))
            for (const auto& [y, b] : read_pairs(reader, k))
              if (x == y) e.axes.pairs.emplace_back(a, b);
        add(own, e, all);
      }
  }

  // Of at most eight inputs, for every two of them: the operands that read them first.
  std::map<std::pair<ValueId, ValueId>, std::pair<size_t, size_t>> reads_of_two(OpId op) const {
    const auto& operands = g_[op].operands;
    std::map<ValueId, size_t> first;
    for (size_t k = operands.size(); k-- > 0;)
      if (operands[k] && g_.is_tensor(operands[k]) && is_given(operands[k])) first[operands[k]] = k;
    std::map<std::pair<ValueId, ValueId>, std::pair<size_t, size_t>> result;
    if (first.size() > 8) return result;
    for (const auto& [a, at_a] : first)
      for (const auto& [b, at_b] : first)
        if (a < b) result[{a, b}] = {at_a, at_b};
    return result;
  }

  const Graph& g_;
  const SpreadOptions& options_;
  std::vector<Reached> reached_;
  std::vector<SpreadEdge> edges_;
};

std::string text_of(const Graph& g, const std::vector<SpreadEdge>& edges) {
  std::string result;
  for (const SpreadEdge& e : edges) {
    result += g[g[e.from].value].name + " -> " + g[g[e.to].value].name + " " +
              std::to_string(static_cast<int>(e.stand_in)) + " from";
    for (DomainId d : e.axes.from) result += " " + print_domain(g, d);
    for (const auto& [a, b] : e.axes.pairs) result += ", " + print_domain(g, a) + " = " + print_domain(g, b);
    result += "\n";
  }
  return result;
}

// Whether neither op of the edge reads a result of the other: both read an input.
bool is_between_readers(const Graph& g, const SpreadEdge& e) {
  const OpId a = g[g[e.from].value].def, b = g[g[e.to].value].def;
  const auto reads = [&](OpId reader, OpId made) {
    return std::ranges::any_of(g[reader].operands, [&](ValueId v) { return v && g[v].def == made; });
  };
  return !reads(a, b) && !reads(b, a);
}

TEST(Spread, FollowsTheEdgesOfThePlainDefinition) {
  size_t edges = 0, joined = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Graph g = testing::random_fusion(seed);
    Random random(seed);
    std::vector<TensorId> made;
    for (OpId op : g[Graph::body()].ops)
      if (g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]))
        made.push_back(g[g[op].results[0]].tensor);
    for (TensorId first : made) {
      std::vector<TensorId> only, until;
      for (TensorId t : made) {
        if (t != first && random.one_in(2)) only.push_back(t);
        if (random.one_in(5)) until.push_back(t);
      }
      for (const SpreadOptions& options :
           {SpreadOptions{{}, {}, false}, SpreadOptions{only, {}, true}, SpreadOptions{{}, until, false}}) {
        const auto expected = PlainSpread(g, options).run(first);
        ASSERT_EQ(text_of(g, spread(g, first, options)), text_of(g, expected))
            << "seed " << seed << " from %" << g[g[first].value].name << "\n"
            << print(g);
        edges += expected.size();
        for (const SpreadEdge& e : expected) joined += is_between_readers(g, e);
      }
    }
  }
  EXPECT_GT(edges, 10000u);
  EXPECT_GT(joined, 1000u);
}

// Ops that read one input by different axes: which edge keeps more depends on the op that it comes from.
TEST(Spread, ReadersOfOneInputAreReachedOverTheEdgeThatKeepsTheMost) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Graph g = fusion("f");
    const auto n = sizes(g, {"m", "n"});
    const ValueId x = input(g, "x", Dtype::kFloat, {n[0], n[1]}), index = input(g, "at", Dtype::kInt64, {n[0], n[1]}),
                  at = input(g, "some", Dtype::kInt64, {n[0]});
    std::vector<ValueId> all;
    for (int i = 0; i < 8; ++i) {
      const std::string name = "t" + std::to_string(i);
      switch (random.below(9)) {
        case 0:
          all.push_back(gather(g, x, index, 0, name));
          break;
        case 1:
          all.push_back(gather(g, x, index, 1, name));
          break;
        case 2:
          all.push_back(permute(g, x, {1, 0}, name));
          break;
        case 3:
          all.push_back(mul(g, x, x, name));
          break;
        case 4:
          all.push_back(add(g, x, index, name));
          break;
        case 6:
          all.push_back(index_select(g, x, at, static_cast<int64_t>(random.below(2)), name));
          break;
        case 7:
          all.push_back(mul(g, at, at, name));
          break;
        case 5:
          all.push_back(all.empty() ? add(g, x, x, name) : unary(g, OpKind::kNeg, random.pick(all), name));
          break;
        default:
          all.push_back(select(g, x, constant_index(g, 0), static_cast<int64_t>(random.below(2)), name));
      }
    }
    for (ValueId first : all) {
      const auto expected = PlainSpread(g, {}).run(g[first].tensor);
      ASSERT_EQ(text_of(g, spread(g, g[first].tensor, {})), text_of(g, expected)) << "seed " << seed << "\n"
                                                                                  << print(g);
    }
  }
}

}  // namespace
}  // namespace fusebox
