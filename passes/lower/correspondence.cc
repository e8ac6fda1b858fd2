#include "passes/lower/correspondence.h"

#include <algorithm>

#include "ir/domain/domain.h"

namespace fusebox::lowering {
namespace {

// What both ways have in common: the loops of consumer and producer, and what a view says of them.
class Comparer {
 public:
  Comparer(Lowering& l, OpId consumer, size_t operand)
      : l_(l),
        consumer_(consumer),
        operand_(operand),
        from_(l.plan.of(l.g[l.g[consumer].operands[operand]].def)),
        mine_(loop_of(l.g.tensor_of(l.g[consumer].results[0]))),
        leader_(l.g[from_.op].results[0]),
        together_(common_loops(from_, l.plan.of(consumer))),
        loop_(loop_of(l.g.tensor_of(leader_))) {
    result_.shared.assign(loop_.size(), false);
    result_.thread.assign(loop_.size(), false);
    result_.at_every_point.assign(loop_.size(), false);
  }

  Correspondence run() {
    // Most ops share no loop and no thread with what they read.
    if (!is_complete()) compare_in_nest();
    if (!is_complete()) compare_at_elements();
    return result_;
  }

 private:
  ParallelType parallel(size_t i) const { return l_.plan.nodes[from_.path[i]].parallel; }
  bool wants_shared(size_t i) const {
    return i < together_ && (i < from_.shared || !is_thread(parallel(i))) && !is_reduction(l_.g, loop_[i]);
  }
  bool wants_thread(size_t i) const { return is_thread(parallel(i)) && !is_reduction(l_.g, loop_[i]); }

  bool is_complete() const {
    for (size_t i = 0; i < loop_.size(); ++i)
      if ((wants_shared(i) && !result_.shared[i]) || (wants_thread(i) && !result_.thread[i])) return false;
    return true;
  }

  // The position of the consumer's loop of a thread dimension, or mine_.size().
  size_t thread_position(ParallelType p) const {
    const auto& path = l_.plan.of(consumer_).path;
    size_t i = 0;
    while (i < path.size() && l_.plan.nodes[path[i]].parallel != p) ++i;
    return i;
  }

  // The first result's domains are fed through their positions where the operand is a sibling of it.
  DomainValues values_of_leader(OpView& view) {
    const ValueId p = l_.g[consumer_].operands[operand_];
    DomainValues values = view.feed(operand_);
    if (leader_ == p) return values;
    return view.values_of_leader(p, values);
  }

  // Equal forms, or the same transforms of axes that the consumer reads at one place: what it relies on is checked
  // before any loop runs. A reshape to [27] has an axis of extent m*n, which its readers call 27.
  bool same_extent(OpView& view, DomainValues& at, DomainId from, DomainId to) {
    if (view.algebra.equal(at.extent(from), view.own.extent(to))) return true;
    const OpKind kind = l_.g[consumer_].kind;
    // These may stretch an axis of one element, whatever it is taken for.
    if (leader_ != l_.g[consumer_].operands[operand_] || kind == OpKind::kExpand || kind == OpKind::kBroadcastInDim)
      return false;
    const auto is_iteration = [&](DomainId d) { return l_.g[d].iter_type == IterType::kIteration; };
    for (const DomainPair& pair : map_producer_to_consumer(l_.g, consumer_, operand_))
      if (pair == DomainPair{from, to}) return is_iteration(from) && (is_iteration(to) || is_reduction(l_.g, to));
    if (!l_.g[from].def || !l_.g[to].def) return false;
    const Transform &a = l_.g[l_.g[from].def], &b = l_.g[l_.g[to].def];
    if (!is_same_transform(a, b) || position_in(a.outputs, from) != position_in(b.outputs, to)) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i)
      if (!same_extent(view, at, a.inputs[i], b.inputs[i])) return false;
    return true;
  }

  template <class ValueAt>
  void compare(OpView& view, ValueAt&& value_at) {
    DomainValues at = values_of_leader(view);
    for (size_t i = 0; i < loop_.size(); ++i) {
      if (wants_shared(i) && l_.is_replicated(mine_[i])) {
        result_.shared[i] = same_extent(view, at, loop_[i], mine_[i]);
        result_.at_every_point[i] = true;
      }
      if (!at.known(loop_[i])) continue;
      if (wants_shared(i) && !result_.shared[i] && !result_.at_every_point[i]) {
        const auto own = value_at(i);
        result_.shared[i] =
            own && view.algebra.equal(at.value(loop_[i]), *own) && same_extent(view, at, loop_[i], mine_[i]);
      }
      if (!wants_thread(i) || result_.thread[i]) continue;
      const size_t k = thread_position(parallel(i));
      // Threads that the reader's checks would keep out read as well.
      if (k < mine_.size() && l_.is_replicated(mine_[k])) continue;
      const auto own = k < mine_.size() ? value_at(k) : std::optional<Form>();
      result_.thread[i] = own && view.algebra.equal(at.value(loop_[i]), *own);
    }
  }

  void compare_in_nest() {
    const Statement s{consumer_, StatementKind::kMain, l_.plan.of(consumer_).path};
    OpView view(l_, s);
    compare(view, [&](size_t i) { return std::optional(view.loop(i)); });
  }

  void compare_at_elements() {
    const Statement no_loops{consumer_, StatementKind::kMain,
                             std::vector<uint32_t>(l_.plan.of(consumer_).path.size(), LoopNode::kNoNode)};
    OpView view(l_, no_loops);
    const Tensor& t = l_.g.tensor_of(l_.g[consumer_].results[0]);
    auto free = root_of(t);
    free.insert(free.end(), t.loop_broadcasts.begin(), t.loop_broadcasts.end());
    for (DomainId d : free)
      view.own.set(d, view.algebra.declare_loop(static_cast<int>(d.index), l_.g[d].name, view.own.extent(d)));
    view.own.propagate();
    compare(view, [&](size_t i) {
      return view.own.known(mine_[i]) ? std::optional(view.own.value(mine_[i])) : std::nullopt;
    });
  }

  Lowering& l_;
  const OpId consumer_;
  const size_t operand_;
  const Nest& from_;
  const std::vector<DomainId>& mine_;
  const ValueId leader_;
  const size_t together_;
  const std::vector<DomainId>& loop_;
  Correspondence result_;
};

}  // namespace

Correspondence correspondence_of(Lowering& l, OpId consumer, size_t operand) {
  return Comparer(l, consumer, operand).run();
}

}  // namespace fusebox::lowering
