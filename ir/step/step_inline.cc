// Steps that compute a tensor inside its consumers' loops.
//
// A producer and its consumers may share their leading loops as long as these are the same position: equal axes, equal
// transforms of them, a broadcast and the axis that concretizes it, a loop broadcast and the domain that it stands for.
// `legal` checks the other needs of a schedule: an order of the ops inside the shared loops, and memory that reaches
// every reader. inline_most looks at the order as well.
#include <algorithm>
#include <optional>
#include <span>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

class Inliner {
 public:
  explicit Inliner(const Graph& g) : g_(g) {
    for (OpId op : g.regions[0].ops) {
      order_.push_back(op);
      for (ValueId v : g[op].operands)
        if (v && g.is_tensor(v) && g[v].def && !g[op].results.empty() && g.is_tensor(g[op].results[0]))
          reads_.push_back({g[v].def, op});
    }
    std::sort(reads_.begin(), reads_.end());
    reads_.erase(std::unique(reads_.begin(), reads_.end()), reads_.end());
    position_.assign(g.ops.size(), 0);
    for (OpId op : order_)
      for (ValueId v : g[op].results)
        if (g.is_tensor(v)) position_[op.index] = std::max(position_[op.index], current(g.tensor_of(v)));
  }

  const std::vector<OpId>& ops() const { return order_; }
  size_t position(OpId op) const { return position_[op.index]; }
  void set_position(OpId op, size_t k) { position_[op.index] = k; }

  // The number of leading loops that the op's results can share with all their readers, by structure alone.
  size_t most(OpId op) const { return shared_of(op).loops.size(); }

  // The same without loops that are better not shared: vectorized, bulk and mma loops, and all loops if a reader is an
  // indexed op.
  size_t most_useful(OpId op) const {
    size_t limit = most(op);
    const auto stop_at_vector = [&](const std::vector<DomainId>& loop) {
      for (size_t i = 0; i < limit && i < loop.size(); ++i) {
        const ParallelType p = g_[loop[i]].parallel;
        if (p == ParallelType::kVectorize || p == ParallelType::kBulk || p == ParallelType::kMma) limit = i;
      }
    };
    stop_at_vector(loop_of(g_.tensor_of(g_[op].results[0])));
    for (const auto& [producer, reader] : reads_of(op)) {
      if (demands(g_[reader].kind, kIndexed)) return 0;
      stop_at_vector(loop_of(g_.tensor_of(g_[reader].results[0])));
    }
    return limit;
  }

  // Whether the ops still have an order if each shares as many loops as `position` says. At each depth, the ops that
  // share this many loops form groups. Groups must not read from each other in a circle, and no group may read a value
  // of its own that is not shared at this depth.
  bool has_order(size_t up_to) const {
    for (size_t depth = 1; depth <= up_to; ++depth)
      if (!has_order_at(depth)) return false;
    return true;
  }

  bool has_order_at(size_t depth) const {
    std::vector<uint32_t> group(g_.ops.size());
    for (uint32_t i = 0; i < group.size(); ++i) group[i] = i;
    const auto find = [&](OpId op) {
      uint32_t i = op.index;
      while (group[i] != i) i = group[i] = group[group[i]];
      return i;
    };
    for (const auto& [producer, reader] : reads_)
      if (position_[producer.index] >= depth)
        group[std::max(find(producer), find(reader))] = std::min(find(producer), find(reader));
    // Kahn's algorithm on the groups.
    std::vector<std::vector<uint32_t>> readers(g_.ops.size());
    std::vector<uint32_t> waiting(g_.ops.size());
    for (const auto& [producer, reader] : reads_) {
      const uint32_t from = find(producer), to = find(reader);
      if (position_[producer.index] >= depth) continue;
      if (from == to) return false;
      readers[from].push_back(to);
      ++waiting[to];
    }
    std::vector<uint32_t> ready;
    size_t groups = 0, done = 0;
    for (OpId op : order_) {
      if (find(op) != op.index) continue;
      ++groups;
      if (waiting[op.index] == 0) ready.push_back(op.index);
    }
    for (; done < ready.size(); ++done)
      for (uint32_t to : readers[ready[done]])
        if (--waiting[to] == 0) ready.push_back(to);
    return done == groups;
  }

 private:
  // For each loop that all readers can share: the axes that it runs over in them. Empty where no broadcast of it is
  // concretized.
  struct Shared {
    std::vector<std::vector<DomainId>> loops;
  };

  std::span<const std::pair<OpId, OpId>> reads_of(OpId op) const {
    const auto first = std::lower_bound(reads_.begin(), reads_.end(), std::pair(op, OpId(0u)));
    auto last = first;
    while (last != reads_.end() && last->first == op) ++last;
    return std::span(first, last);
  }

  static size_t current(const Tensor& t) {
    if (!t.inline_at) return 0;
    const auto& loop = loop_of(t);
    const size_t at = position_in(loop, t.inline_at);
    return at < loop.size() ? at + 1 : 0;
  }

  // What the op's results share with all their readers. Its readers are asked first: a broadcast may be concretized by
  // readers of readers. A program may be deeper than the machine's stack.
  const Shared& shared_of(OpId op) const {
    if (shared_.empty()) shared_.resize(g_.ops.size());
    std::vector<OpId> open{op};
    while (!open.empty()) {
      const OpId next = open.back();
      const size_t count = open.size();
      if (!shared_[next.index] && has_broadcasts(next))
        for (const auto& [producer, reader] : reads_of(next))
          if (!shared_[reader.index]) open.push_back(reader);
      if (open.size() > count) continue;
      if (!shared_[next.index]) shared_[next.index] = find_shared(next);
      open.pop_back();
    }
    return *shared_[op.index];
  }

  Shared find_shared(OpId op) const {
    // ATen computes it, and its results may have different axes: there are no loops to share.
    if (demands(g_[op].kind, kLibrary)) return {};
    const auto& loop = loop_of(g_.tensor_of(g_[op].results[0]));
    size_t limit = 0;
    while (limit < loop.size() && g_[loop[limit]].iter_type != IterType::kReduction) ++limit;
    bool is_read = false;
    Shared shared{.loops = std::vector<std::vector<DomainId>>(limit)};
    for (const auto& [producer, reader] : reads_of(op)) {
      is_read = true;
      for (size_t k = 0; k < g_[reader].operands.size(); ++k) {
        const ValueId v = g_[reader].operands[k];
        if (v && g_[v].def == op && g_.is_tensor(v)) shared.loops.resize(shared_with(v, reader, k, shared));
      }
    }
    if (!is_read) shared.loops.clear();
    return shared;
  }

  size_t shared_with(ValueId v, OpId reader, size_t operand, Shared& shared) const {
    const Tensor &own = g_.tensor_of(v), &result = g_.tensor_of(g_[reader].results[0]);
    // The classes pair loop broadcasts only.
    const bool has_stand_ins = !own.loop_broadcasts.empty() || !result.loop_broadcasts.empty();
    const auto pairs = match_domains(
        g_, reader, operand, 0,
        {.through_resize = false, .classes = has_stand_ins ? &of_kind(AxisClassKind::kForwarded) : nullptr});
    const auto& loop = loop_of(own);
    const auto& theirs = loop_of(result);
    const bool may_broadcast = has_broadcasts(own);
    const size_t limit = shared.loops.size();
    for (size_t i = 0; i < limit; ++i) {
      if (i >= theirs.size() || i >= loop.size()) return i;
      if (std::find(pairs.begin(), pairs.end(), DomainPair{loop[i], theirs[i]}) == pairs.end()) return i;
      if (may_broadcast && !agrees(loop[i], leaves_in(reader, i), shared.loops[i])) return i;
    }
    return limit;
  }

  // Whether any loop of the tensor may be made from a broadcast.
  bool has_broadcasts(const Tensor& t) const {
    const auto is_broadcast = [&](DomainId d) { return g_[d].iter_type == IterType::kBroadcast; };
    if (!t.loop_broadcasts.empty() || std::ranges::any_of(root_of(t), is_broadcast)) return true;
    return std::ranges::any_of(t.logical, is_broadcast);
  }

  bool has_broadcasts(OpId op) const {
    return !g_[op].results.empty() && std::ranges::any_of(g_[op].results, [&](ValueId v) {
      return g_.is_tensor(v) && has_broadcasts(g_.tensor_of(v));
    });
  }

  // The axes that a loop of a reader runs over: those of its own readers, where these share the loop and concretize
  // broadcasts of it.
  std::vector<DomainId> leaves_in(OpId reader, size_t loop) const {
    std::vector<DomainId> own = leaves(g_, loop_of(g_.tensor_of(g_[reader].results[0]))[loop]);
    const auto& known = shared_[reader.index];
    if (!known || loop >= known->loops.size() || known->loops[loop].size() != own.size()) return own;
    for (size_t i = 0; i < own.size(); ++i)
      if (g_[own[i]].iter_type == IterType::kBroadcast) own[i] = known->loops[loop][i];
    return own;
  }

  // Classes cost a walk over the whole graph, and few schedules need them.
  const AxisClasses& of_kind(AxisClassKind kind) const {
    auto& classes = kind == AxisClassKind::kExact ? exact_ : forwarded_;
    if (!classes) classes.emplace(g_, kind);
    return *classes;
  }

  // Whether this reader, whose loop runs over `axes`, concretizes a broadcast as the first reader that does so.
  bool agrees(DomainId own, const std::vector<DomainId>& axes, std::vector<DomainId>& first) const {
    const auto is_broadcast = [&](DomainId d) { return g_[d].iter_type == IterType::kBroadcast; };
    if (std::ranges::none_of(leaves(g_, own), is_broadcast) || std::ranges::all_of(axes, is_broadcast)) return true;
    if (first.empty()) {
      first = axes;
      return true;
    }
    return std::ranges::equal(first, axes, [&](DomainId x, DomainId y) {
      return x == y || of_kind(AxisClassKind::kExact).same(x, y) || (g_[x].extent && g_[x].extent == g_[y].extent);
    });
  }

  const Graph& g_;
  mutable std::optional<AxisClasses> forwarded_, exact_;
  mutable std::vector<std::optional<Shared>> shared_;  // by op; made when asked for
  std::vector<OpId> order_;
  std::vector<std::pair<OpId, OpId>> reads_;  // producer, reader
  std::vector<size_t> position_;  // for each op: the number of loops that its results share with their readers
};

// For each op: whether it makes an output.
std::vector<bool> makes_output(const Graph& g) {
  std::vector<bool> result(g.ops.size());
  for (const OutputRef& out : outputs(g))
    if (g[out.value].def) result[g[out.value].def.index] = true;
  return result;
}

void inline_results(Graph& g, OpId op, size_t k) {
  for (ValueId v : g[op].results) {
    Tensor& t = g.tensor_of(v);
    t.inline_at = k == 0 ? DomainId() : loop_of(t)[k - 1];
  }
}

}  // namespace

void step_inline_at(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const DomainId d = c.domain(0);
  const OpId op = c.g[c.g[t].value].def;
  const auto& loop = loop_of(c.g[t]);
  const size_t at = position_in(loop, d);
  const auto illegal = [&](const std::string& why) { c.refuse(why, c.place(d), ErrorCode::kIllegalInline); };
  if (at == loop.size())
    c.refuse("this is not one of the tensor's loops; name a loop that no other step has used up", c.place(d));
  if (makes_output(c.g)[op.index]) illegal("an output is not inlined; use cache_before, and inline the copy");
  for (size_t i = 0; i <= at; ++i)
    if (c.g[loop[i]].iter_type == IterType::kReduction)
      illegal("the loop " + c.place(loop[i]) +
              " is a reduction, which ends before its value is read; inline outside of it");
  const size_t most = Inliner(c.g).most(op);
  if (most <= at)
    illegal(most == 0
                ? "the outermost loop is not shared with every consumer; make their loops alike with transform_like"
                : "consumers share this tensor's loops only up to " + c.place(loop[most - 1]) +
                      "; inline there, or make their loops alike with transform_like");
  if (!c.target) return;
  c.begin();
  const bool deeper = at + 1 < loop.size() && c.defects.has(Defect::kInlinePosition);
  inline_results(*c.target, op, at + (deeper ? 2 : 1));
}

namespace {

// Lets the ops share loops from the outermost to the innermost, at each depth as many ops as have an order there. An op
// that shares loops already may ask for others to share them too: what stands between it and its readers.
void share_by_depth(Inliner& inliner, std::span<const std::pair<OpId, size_t>> most, std::span<const size_t> before,
                    std::vector<std::pair<OpId, size_t>>& shared) {
  const auto put = [&](size_t i, size_t k) {
    shared[i].second = k;
    inliner.set_position(shared[i].first, k);
  };
  size_t deepest = 0;
  for (size_t i = 0; i < most.size(); ++i) {
    put(i, before[i]);
    deepest = std::max(deepest, most[i].second);
  }
  for (size_t depth = 1; depth <= deepest; ++depth) {
    std::vector<size_t> may;
    for (size_t i = 0; i < most.size(); ++i)
      if (most[i].second >= depth && shared[i].second == depth - 1) may.push_back(i);
    for (size_t i : may) put(i, depth);
    if (inliner.has_order_at(depth)) continue;
    for (size_t i : may) put(i, depth - 1);
    for (size_t i : may) {
      put(i, depth);
      if (!inliner.has_order_at(depth)) put(i, depth - 1);
    }
  }
}

}  // namespace

void step_inline_most(StepContext& c) {
  const auto listed = c.tensors_from(0);
  for (TensorId t : listed) c.require_scheduled(t);
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  Inliner inliner(g);
  const std::vector<OpId> ops = inliner.ops();
  const std::vector<bool> is_output = makes_output(g);
  std::vector<bool> is_listed(g.ops.size());
  for (TensorId t : listed) is_listed[g[g[t].value].def.index] = true;
  std::vector<std::pair<OpId, size_t>> wanted;  // readers first, each with the number of loops to share
  for (size_t i = ops.size(); i-- > 0;) {
    const OpId op = ops[i];
    if (g[op].kind == OpKind::kInput || g[op].results.empty() || !g.is_tensor(g[op].results[0]) || is_output[op.index])
      continue;
    if (!listed.empty() && !is_listed[op.index]) continue;
    const size_t k = inliner.most_useful(op);
    if (k > inliner.position(op)) wanted.push_back({op, k});
  }
  // Tries all of them together first. Usually they have an order, and one search is enough instead of one for each op.
  std::vector<size_t> before;
  size_t deepest = 0;
  for (const auto& [op, k] : wanted) {
    before.push_back(inliner.position(op));
    inliner.set_position(op, k);
    deepest = std::max(deepest, k);
  }
  if (!inliner.has_order(deepest)) {
    const auto most = wanted;
    for (size_t i = 0; i < wanted.size(); ++i) inliner.set_position(wanted[i].first, before[i]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto& [op, k] = wanted[i];
      for (; k > before[i]; --k) {
        inliner.set_position(op, k);
        if (inliner.has_order(k)) break;
      }
      inliner.set_position(op, k);
    }
    if (!inliner.has_order(deepest)) share_by_depth(inliner, most, before, wanted);
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].second > before[i]) inline_results(g, wanted[i].first, wanted[i].second);
}

}  // namespace fusebox
