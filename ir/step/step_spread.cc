#include "ir/step/step_spread.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

// For each axis of an op, and each domain of the op's own transforms: the axes of the first tensor that it stems from,
// as bits.
using Info = std::map<DomainId, uint64_t>;

struct Candidate {
  SpreadEdge edge;
  Info info;         // for the axes of `edge.to`
  int kept = 0;      // the number of axes of the first tensor that the edge keeps
  size_t order = 0;  // the order of discovery
};

// Whether `b` is followed before `a`, because it keeps more axes or was found first.
bool comes_later(const Candidate& a, const Candidate& b) {
  return a.kept != b.kept ? a.kept < b.kept : a.order > b.order;
}

class Spreader {
 public:
  Spreader(const Graph& g, TensorId first, const SpreadOptions& options)
      : g_(g), options_(options), reached_(g.ops.size()), only_(ops_of(options.only)), until_(ops_of(options.until)) {
    const OpId start = g[g[first].value].def;
    for (OpId id : g.regions[0].ops) {
      // The others are never reached.
      if (!options.only.empty() && !only_[id.index] && id != start) continue;
      const Op& op = g[id];
      if (op.kind == OpKind::kInput || op.results.empty() || !g.is_tensor(op.results[0])) continue;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const ValueId v = op.operands[k];
        if (!v || !g.is_tensor(v)) continue;
        if (is_input(g, g[v].tensor))
          read_inputs_[{v, {}}].reads.push_back({id, k});
        else
          reads_[v].push_back({id, k});
      }
      for (const auto& [inputs, read] : reads_of_two(id)) read_inputs_[inputs].reads.push_back(read);
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
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), comes_later);
      Candidate next = std::move(candidates_.back());
      candidates_.pop_back();
      if (is_reached(next.edge.to)) continue;
      edges.push_back(next.edge);
      reach(next.edge.to, complete(next.edge.to, std::move(next.info)), goes_beyond(next.edge.to));
    }
    return edges;
  }

 private:
  static constexpr size_t kNone = ~size_t{0};
  static constexpr size_t kMostInputs = 8;  // an op that reads more of them has no edges over two inputs together

  // A read of one tensor, or of two inputs.
  struct Read {
    OpId op;
    size_t operand;
    size_t second = kNone;
    auto operator<=>(const Read&) const = default;
  };
  using Inputs = std::pair<ValueId, ValueId>;  // the second may be none

  // The ops that read an input, or both of two, in groups that read the same axes of them. All edges from one op to a
  // group keep the same number of axes. A group therefore needs edges from another op only if these keep more.
  struct ReadInput {
    std::vector<Read> reads;
    std::vector<size_t> groups;  // for each read: its group; made when an op that reads the inputs is first reached
    std::vector<std::vector<DomainId>> axes;  // for each group: the axes of the inputs that it reads
    std::vector<int> kept;                    // for each group: the most axes that an edge to it keeps
  };

  // For every two inputs that an op reads: its first reads of them. Each may give other axes of the result, as the
  // table and the index of `index_select` do.
  std::map<Inputs, Read> reads_of_two(OpId op) const {
    const auto& operands = g_[op].operands;
    std::map<ValueId, size_t> inputs;
    for (size_t k = 0; k < operands.size(); ++k)
      if (operands[k] && g_.is_tensor(operands[k]) && is_input(g_, g_[operands[k]].tensor))
        inputs.try_emplace(operands[k], k);
    std::map<Inputs, Read> result;
    if (inputs.size() > kMostInputs) return result;
    for (auto a = inputs.begin(); a != inputs.end(); ++a)
      for (auto b = std::next(a); b != inputs.end(); ++b) result[{a->first, b->first}] = {op, a->second, b->second};
    return result;
  }

  // For each op: whether one of its results is listed.
  std::vector<bool> ops_of(std::span<const TensorId> listed) const {
    std::vector<bool> result(g_.ops.size());
    for (TensorId t : listed)
      if (const OpId def = g_[g_[t].value].def) result[def.index] = true;
    return result;
  }

  bool is_reached(TensorId t) const { return reached_[g_[g_[t].value].def.index]; }

  bool goes_beyond(TensorId t) const {
    return !until_[g_[g_[t].value].def.index] && (options_.through_fixed || fixed_loops(g_, t) == 0);
  }

  // Passes the bits through an op's own transforms, in both directions.
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
      // Offers the op's operands, once, and then the readers of each result.
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
    const Info own = of_sibling(info, first_result(op));
    for (ValueId input : std::set<ValueId>(g_[op].operands.begin(), g_[op].operands.end())) {
      const auto it = read_inputs_.find({input, {}});
      if (it == read_inputs_.end()) continue;
      for (size_t k = 0; k < g_[op].operands.size(); ++k)
        if (g_[op].operands[k] == input) reach_readers(it->second, {op, k}, own);
    }
    for (const auto& [inputs, read] : reads_of_two(op))
      if (const auto it = read_inputs_.find(inputs); it != read_inputs_.end()) reach_readers(it->second, read, own);
  }

  // Offers edges from one reader of an input, or of two, to the others.
  void reach_readers(ReadInput& input, const Read& from, const Info& own) {
    if (input.reads.size() == 1) return;
    if (input.groups.empty()) make_groups(input);
    const ReplayAxes& axes = axes_of(from);
    std::vector<bool> keeps_more(input.axes.size());
    for (size_t i = 0; i < input.axes.size(); ++i) {
      uint64_t all = 0;
      for (const auto& [x, to] : axes.pairs)
        if (const auto bits = own.find(to); bits != own.end() && position_in(input.axes[i], x) < input.axes[i].size())
          all |= bits->second;
      keeps_more[i] = std::popcount(all) > input.kept[i];
      input.kept[i] = std::max(input.kept[i], std::popcount(all));
    }
    if (std::find(keeps_more.begin(), keeps_more.end(), true) == keeps_more.end()) return;
    const TensorId first = first_result(from.op);
    for (size_t i = 0; i < input.reads.size(); ++i) {
      const Read& to = input.reads[i];
      if (keeps_more[input.groups[i]] && to.op != from.op && !is_reached(first_result(to.op)))
        offer(first, first_result(to.op), own, joined(from.op, axes, to), StandIn::kAnyAxis);
    }
  }

  void make_groups(ReadInput& input) {
    std::map<std::vector<DomainId>, size_t> known;
    for (const Read& read : input.reads) {
      std::vector<DomainId> axes;
      for (const auto& [x, to] : axes_of(read).pairs) axes.push_back(x);
      std::sort(axes.begin(), axes.end());
      const auto [it, is_new] = known.emplace(std::move(axes), input.axes.size());
      if (is_new) input.axes.push_back(it->first);
      input.groups.push_back(it->second);
    }
    input.kept.resize(input.axes.size());
  }

  TensorId first_result(OpId op) const { return g_[g_[op].results[0]].tensor; }

  Info of_sibling(const Info& info, TensorId s) const {
    Info result;
    for (const auto& [d, bits] : info)
      if (const DomainId own = in_sibling(g_, s, d)) result[own] |= bits;
    return result;
  }

  // The axes from producer to consumer.
  const ReplayAxes& axes_of(const Read& read) {
    const auto [it, is_new] = axes_.try_emplace(read);
    if (!is_new) return it->second;
    it->second = make_axes(read.op, read.operand);
    if (read.second == kNone) return it->second;
    const ReplayAxes second = make_axes(read.op, read.second);
    it->second.pairs.insert(it->second.pairs.end(), second.pairs.begin(), second.pairs.end());
    return it->second;
  }

  ReplayAxes make_axes(OpId reader, size_t operand) const {
    const Op& op = g_[reader];
    const Tensor& producer = g_.tensor_of(op.operands[operand]);
    ReplayAxes axes{producer.logical, {}};
    for (DomainPair pair : map_producer_to_consumer(g_, reader, operand))
      axes.pairs.emplace_back(pair.producer, pair.consumer);
    if (op.kind == OpKind::kCat) {
      const auto from = logical_without_reductions(g_, producer);
      const auto& to = root_of(g_.tensor_of(op.results[0]));
      const size_t axis = named_axis(op.attrs.integer(AttrKey::kAxis), to.size());
      if (axis < from.size() && axis < to.size()) axes.pairs.emplace_back(from[axis], to[axis]);
    }
    return axes;
  }

  static ReplayAxes reversed(const ReplayAxes& axes, const Tensor& consumer) {
    ReplayAxes result{root_of(consumer), {}};
    for (const auto& [a, b] : axes.pairs) result.pairs.emplace_back(b, a);
    return result;
  }

  // The axes between op `a`, which reads an input (or two) by `of_a`, and another reader of it.
  ReplayAxes joined(OpId a, const ReplayAxes& of_a, const Read& b) {
    ReplayAxes result{root_of(g_.tensor_of(g_[a].results[0])), {}};
    const ReplayAxes& of_b = axes_of(b);
    for (const auto& [x, to_a] : of_a.pairs)
      for (const auto& [y, to_b] : of_b.pairs)
        if (x == y) result.pairs.emplace_back(to_a, to_b);
    return result;
  }

  void offer(TensorId from, TensorId to, const Info& info, ReplayAxes axes, StandIn stand_in) {
    if (axes.pairs.empty()) return;
    if (!options_.only.empty() && !only_[g_[g_[to].value].def.index]) return;
    Candidate c{{from, to, stand_in, std::move(axes)}, {}, 0, found_};
    uint64_t all = 0;
    for (const auto& [a, b] : c.edge.axes.pairs)
      if (const auto it = info.find(a); it != info.end()) {
        c.info[b] |= it->second;
        all |= it->second;
      }
    c.kept = std::popcount(all);
    if (c.kept == 0) return;
    ++found_;
    candidates_.push_back(std::move(c));
    std::push_heap(candidates_.begin(), candidates_.end(), comes_later);
  }

  const Graph& g_;
  const SpreadOptions& options_;
  std::vector<bool> reached_;             // for each op
  const std::vector<bool> only_, until_;  // for each op
  // The readers, in text order, of tensors that the program makes and of inputs.
  std::map<ValueId, std::vector<Read>> reads_;
  std::map<Inputs, ReadInput> read_inputs_;
  std::map<Read, ReplayAxes> axes_;
  std::vector<Candidate> candidates_;  // a heap
  size_t found_ = 0;
};

}  // namespace

std::vector<SpreadEdge> spread(const Graph& g, TensorId from, const SpreadOptions& options) {
  return Spreader(g, from, options).run(from);
}

}  // namespace fusebox
