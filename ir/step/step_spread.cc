#include "ir/step/step_spread.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

// For each axis (and what an op's own transforms make of it) the axes of the first tensor that it stems from, as bits.
using Info = std::map<DomainId, uint64_t>;

struct Candidate {
  SpreadEdge edge;
  Info info;     // of `edge.to`
  int kept = 0;  // axes of the first tensor
};

class Spreader {
 public:
  Spreader(const Graph& g, const SpreadOptions& options) : g_(g), options_(options), reached_(g.ops.size()) {
    for (OpId id : g.regions[0].ops) {
      const Op& op = g[id];
      if (op.kind == OpKind::kInput || op.results.empty() || !g.is_tensor(op.results[0])) continue;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const ValueId v = op.operands[k];
        if (!v || !g.is_tensor(v)) continue;
        (is_input(g, g[v].tensor) ? read_inputs_ : reads_)[v].push_back({id, k});
      }
    }
  }

  std::vector<SpreadEdge> run(TensorId first) {
    Info info;
    uint64_t bit = 1;
    for (DomainId d : root_of(g_[first])) {
      info[d] = bit;
      bit = std::rotl(bit, 1);
    }
    reach(first, complete(first, std::move(info)), true);
    std::vector<SpreadEdge> edges;
    while (true) {
      auto best = candidates_.end();
      for (auto it = candidates_.begin(); it != candidates_.end(); ++it)
        if (!is_reached(it->edge.to) && (best == candidates_.end() || it->kept > best->kept)) best = it;
      if (best == candidates_.end()) return edges;
      Candidate next = std::move(*best);
      candidates_.erase(best);
      edges.push_back(next.edge);
      reach(next.edge.to, next.info, goes_beyond(next.edge.to));
    }
  }

 private:
  struct Read {
    OpId op;
    size_t operand;
  };

  bool is_reached(TensorId t) const { return reached_[g_[g_[t].value].def.index]; }

  bool any_of(std::span<const TensorId> list, TensorId t) const {
    const auto same = siblings(g_, t);
    return std::any_of(list.begin(), list.end(),
                       [&](TensorId l) { return std::find(same.begin(), same.end(), l) != same.end(); });
  }

  bool goes_beyond(TensorId t) const {
    return !any_of(options_.until, t) && (options_.through_fixed || fixed_loops(g_, t) == 0);
  }

  // Through an op's own transforms, both ways.
  Info complete(TensorId t, Info info) const {
    const auto of_op = op_transforms(g_, g_[t]);
    const auto pass = [&](const std::vector<DomainId>& from, const std::vector<DomainId>& to) {
      uint64_t bits = 0;
      for (DomainId d : from)
        if (const auto it = info.find(d); it != info.end()) bits |= it->second;
      if (bits != 0)
        for (DomainId d : to) info[d] |= bits;
    };
    for (TransformId id : of_op) pass(g_[id].inputs, g_[id].outputs);
    for (size_t i = of_op.size(); i-- > 0;) pass(g_[of_op[i]].outputs, g_[of_op[i]].inputs);
    return info;
  }

  void reach(TensorId t, const Info& info, bool beyond) {
    const OpId op = g_[g_[t].value].def;
    reached_[op.index] = true;
    if (!beyond) return;
    for (ValueId result : g_[op].results) {
      const TensorId s = g_[result].tensor;
      const Info own = of_sibling(info, s);
      // What the op reads stands before it, what reads its results behind.
      if (s == first_result(op))
        for (size_t k = 0; k < g_[op].operands.size(); ++k) {
          const ValueId v = g_[op].operands[k];
          if (v && g_.is_tensor(v) && !is_reached(g_[v].tensor) && !is_input(g_, g_[v].tensor))
            offer(s, g_[v].tensor, own, reversed(axes_of({op, k}), g_[s]), StandIn::kAnyAxis);
        }
      if (const auto it = reads_.find(result); it != reads_.end())
        for (const Read& read : it->second)
          if (!is_reached(first_result(read.op)))
            offer(s, first_result(read.op), own, axes_of(read), StandIn::kBroadcastAxis);
    }
    const TensorId first = first_result(op);
    for (ValueId input : std::set<ValueId>(g_[op].operands.begin(), g_[op].operands.end())) {
      const auto it = read_inputs_.find(input);
      if (it == read_inputs_.end()) continue;
      const std::vector<Read>& list = it->second;
      for (const Read& a : list)
        for (const Read& b : list)
          if (a.op == op && b.op != op && !is_reached(first_result(b.op)))
            offer(first, first_result(b.op), of_sibling(info, first), joined(a, b), StandIn::kNone);
    }
  }

  TensorId first_result(OpId op) const { return g_[g_[op].results[0]].tensor; }

  Info of_sibling(const Info& info, TensorId s) const {
    Info result;
    for (const auto& [d, bits] : info)
      if (const DomainId own = in_sibling(g_, s, d)) result[own] |= bits;
    return result;
  }

  // Producer to consumer.
  ReplayAxes axes_of(const Read& read) const {
    const Op& op = g_[read.op];
    const Tensor& producer = g_.tensor_of(op.operands[read.operand]);
    ReplayAxes axes{producer.logical, {}};
    for (DomainPair pair : map_producer_to_consumer(g_, read.op, read.operand))
      axes.pairs.emplace_back(pair.producer, pair.consumer);
    if (op.kind == OpKind::kCat) {
      const auto from = logical_without_reductions(g_, producer);
      const auto& to = root_of(g_.tensor_of(op.results[0]));
      const int64_t named = op.attrs.integer(AttrKey::kAxis);
      const auto axis = static_cast<size_t>(named < 0 ? named + static_cast<int64_t>(to.size()) : named);
      if (axis < from.size() && axis < to.size()) axes.pairs.emplace_back(from[axis], to[axis]);
    }
    return axes;
  }

  static ReplayAxes reversed(const ReplayAxes& axes, const Tensor& consumer) {
    ReplayAxes result{root_of(consumer), {}};
    for (const auto& [a, b] : axes.pairs) result.pairs.emplace_back(b, a);
    return result;
  }

  // Of two ops that read one input.
  ReplayAxes joined(const Read& a, const Read& b) const {
    ReplayAxes result{root_of(g_.tensor_of(g_[a.op].results[0])), {}};
    const ReplayAxes of_a = axes_of(a), of_b = axes_of(b);
    for (const auto& [x, to_a] : of_a.pairs)
      for (const auto& [y, to_b] : of_b.pairs)
        if (x == y) result.pairs.emplace_back(to_a, to_b);
    return result;
  }

  void offer(TensorId from, TensorId to, const Info& info, ReplayAxes axes, StandIn stand_in) {
    if (axes.pairs.empty()) return;
    if (!options_.only.empty() && !any_of(options_.only, to)) return;
    Candidate c{{from, to, stand_in, std::move(axes)}, {}, 0};
    uint64_t all = 0;
    for (const auto& [a, b] : c.edge.axes.pairs)
      if (const auto it = info.find(a); it != info.end()) {
        c.info[b] |= it->second;
        all |= it->second;
      }
    c.kept = std::popcount(all);
    if (c.kept == 0) return;
    c.info = complete(to, std::move(c.info));
    candidates_.push_back(std::move(c));
  }

  const Graph& g_;
  const SpreadOptions& options_;
  std::vector<bool> reached_;  // by op
  // In text order, of tensors that the program makes, and of its inputs.
  std::map<ValueId, std::vector<Read>> reads_, read_inputs_;
  std::vector<Candidate> candidates_;  // in order of discovery: of equal ones the first is taken
};

}  // namespace

std::vector<SpreadEdge> spread(const Graph& g, TensorId from, const SpreadOptions& options) {
  return Spreader(g, options).run(from);
}

}  // namespace fusebox
