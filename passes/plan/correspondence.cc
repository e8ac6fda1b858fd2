#include "passes/plan/correspondence.h"

#include <algorithm>
#include <set>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/domain/joined_axis.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

// Makes these domains of the consumer, and the broadcasts of its loops, the variables of its forms.
void stand_at(const Graph& g, const Tensor& consumer, std::vector<DomainId> free, StatementView& view) {
  free.insert(free.end(), consumer.loop_broadcasts.begin(), consumer.loop_broadcasts.end());
  for (DomainId d : free)
    view.own.set(d, view.algebra.declare_loop(static_cast<int>(d.index), g[d].name, view.own.extent(d)));
  view.own.propagate();
}

// One value may have two forms, made before and after a fact of it was known.
bool is_equal(IndexAlgebra& algebra, Form a, Form b) {
  if (algebra.equal(a, b)) return true;
  return algebra.prove_nonneg(algebra.sub(a, b)) && algebra.prove_nonneg(algebra.sub(b, a));
}

// The domains of the operand that the consumer reads at its own place: axes, and the axis that a cat joins, resized to the
// cat's. The extents of the joined tensors make the cat's in every run. As forms they may not: if the program equates 2*n
// with 2, a scalar for n + 1 + n is 3, and n + 1 is not. Not for an op that stretches.
std::vector<DomainPair> domains_at_one_place(const Graph& g, OpId consumer, size_t operand) {
  auto pairs = map_producer_to_consumer(g, consumer, operand);
  const auto joined = joined_axis(g, consumer, operand);
  if (!joined) return pairs;
  const ValueId leader = g[g[g[consumer].operands[operand]].def].results[0];
  if (const TransformId resize = joining_resize(g, g[leader].tensor, *joined))
    pairs.push_back({g[resize].outputs[0], joined->result});
  return pairs;
}

// Compares a producer's loops with its consumer's: first by their transforms, then, for the loops that this leaves open, in
// the nest, and last at elements.
class Comparer {
 public:
  Comparer(const KernelPlan& plan, OpId consumer, size_t operand)
      : plan_(plan),
        g_(*plan.graph),
        consumer_(consumer),
        operand_(operand),
        from_(plan.nest_of(g_[g_[consumer].operands[operand]].def)),
        mine_(loop_of(g_.tensor_of(g_[consumer].results[0]))),
        leader_(g_[from_.op].results[0]),
        together_(common_loops(from_, plan.nest_of(consumer))),
        loop_(loop_of(g_.tensor_of(leader_))) {
    result_.shared.assign(loop_.size(), false);
    result_.thread.assign(loop_.size(), false);
    result_.at_every_point.assign(loop_.size(), false);
    result_.if_any.assign(loop_.size(), false);
  }

  Correspondence run() {
    // Most ops share no loop and no thread dimension with their operands, so nothing is left to compare.
    if (!is_complete()) compare_transforms();
    if (!is_complete()) compare_in_nest();
    if (!is_complete()) compare_at_elements();
    compare_outside();
    return result_;
  }

  bool walks_alike() {
    if (!reads_in_place() || mine_.size() != loop_.size()) return false;
    pairs_ = domains_at_one_place(g_, consumer_, operand_);
    for (size_t i = 0; i < loop_.size(); ++i)
      if (plan_.is_replicated(mine_[i]) || !is_made_alike(loop_[i], mine_[i])) return false;
    return true;
  }

 private:
  // Whether mapped axes are one place of the producer's own result.
  bool reads_in_place() const { return leader_ == g_[consumer_].operands[operand_] && !stretches(g_[consumer_].kind); }
  ParallelType parallel(size_t i) const { return plan_.nest_plan.nodes[from_.path[i]].parallel; }
  bool wants_shared(size_t i) const {
    return i < together_ && (i < from_.shared || !is_thread(parallel(i))) && !is_reduction(g_, loop_[i]);
  }
  bool wants_thread(size_t i) const { return is_thread(parallel(i)) && !is_reduction(g_, loop_[i]); }

  bool is_complete() const {
    for (size_t i = 0; i < loop_.size(); ++i)
      if ((wants_shared(i) && !result_.shared[i]) || (wants_thread(i) && !result_.thread[i])) return false;
    return true;
  }

  // The position of the consumer's loop of a thread dimension, or mine_.size().
  size_t thread_position(ParallelType p) const {
    const auto& path = plan_.nest_of(consumer_).path;
    size_t i = 0;
    while (i < path.size() && plan_.nest_plan.nodes[path[i]].parallel != p) ++i;
    return i;
  }

  // The values of the domains of the producer's first result. If the operand is another result, its values are passed
  // on by position.
  DomainValues values_of_leader(StatementView& view) {
    const ValueId p = g_[consumer_].operands[operand_];
    DomainValues values = view.feed(operand_);
    if (leader_ == p) return values;
    return view.values_of_leader(p, values);
  }

  // Whether two domains have the same extent: their forms are equal, or the same transforms make both from axes that
  // the consumer maps to each other. Mapped axes have equal extents, which is checked before any loop runs.
  //
  //   a reshape to [27] makes an axis of extent m*n; its readers call that extent 27
  bool same_extent(StatementView& view, DomainValues& at, DomainId from, DomainId to) {
    if (is_equal(view.algebra, at.extent(from), view.own.extent(to))) return true;
    // A stretching op may map an axis of one element to a longer axis.
    if (leader_ != g_[consumer_].operands[operand_] || stretches(g_[consumer_].kind)) return false;
    const auto is_iteration = [&](DomainId d) { return g_[d].iter_type == IterType::kIteration; };
    for (const DomainPair& pair : map_producer_to_consumer(g_, consumer_, operand_))
      if (pair == DomainPair{from, to}) return is_iteration(from) && (is_iteration(to) || is_reduction(g_, to));
    if (!g_[from].def || !g_[to].def) return false;
    const Transform &a = g_[g_[from].def], &b = g_[g_[to].def];
    if (!is_same_transform(a, b) || position_in(a.outputs, from) != position_in(b.outputs, to)) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i)
      if (!same_extent(view, at, a.inputs[i], b.inputs[i])) return false;
    return true;
  }

  // Whether the same transforms make both domains from axes that the consumer reads at its own place. Then both are one
  // function of the elements, without a form of it.
  bool is_made_alike(DomainId from, DomainId to) const {
    for (const DomainPair& pair : pairs_) {
      if (pair != DomainPair{from, to}) continue;
      // Two broadcasts have one element each, or as many as one extent that shared loops give to both. A promoted
      // broadcast has the extent of every axis that reads it; plan_nests refuses others.
      if (g_[from].iter_type == IterType::kBroadcast) {
        const ValueId promoted = plan_.nest_plan.promoted_extent(from);
        return g_[to].iter_type == IterType::kBroadcast ? promoted == plan_.nest_plan.promoted_extent(to)
                                                        : bool(promoted);
      }
      return g_[from].iter_type == IterType::kIteration &&
             (g_[to].iter_type == IterType::kIteration || is_reduction(g_, to));
    }
    if (!g_[from].def || !g_[to].def) return false;
    const Transform &a = g_[g_[from].def], &b = g_[g_[to].def];
    if (!is_same_transform(a, b) || position_in(a.outputs, from) != position_in(b.outputs, to)) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i)
      if (!is_made_alike(a.inputs[i], b.inputs[i])) return false;
    return true;
  }

  // Most ops read their operands along loops that the same steps have made.
  void compare_transforms() {
    if (!reads_in_place()) return;
    pairs_ = domains_at_one_place(g_, consumer_, operand_);
    for (size_t i = 0; i < loop_.size(); ++i) {
      if (wants_shared(i) && !plan_.is_replicated(mine_[i])) result_.shared[i] = is_made_alike(loop_[i], mine_[i]);
      if (!wants_thread(i)) continue;
      const size_t k = thread_position(parallel(i));
      if (k < mine_.size() && !plan_.is_replicated(mine_[k])) result_.thread[i] = is_made_alike(loop_[i], mine_[k]);
    }
  }

  template <class ValueAt>
  void compare(StatementView& view, ValueAt&& value_at) {
    DomainValues at = values_of_leader(view);
    for (size_t i = 0; i < loop_.size(); ++i) {
      if (wants_shared(i) && plan_.is_replicated(mine_[i])) {
        result_.shared[i] = same_extent(view, at, loop_[i], mine_[i]);
        result_.at_every_point[i] = true;
        if (!is_thread(parallel(i))) compared_.insert(i);
      }
      if (!at.known(loop_[i])) continue;
      if (wants_shared(i) && !result_.shared[i] && !result_.at_every_point[i]) {
        const auto own = value_at(i);
        result_.shared[i] =
            own && is_equal(view.algebra, at.value(loop_[i]), *own) && same_extent(view, at, loop_[i], mine_[i]);
        if (!is_thread(parallel(i))) compared_.insert(i);
      }
      if (!wants_thread(i) || result_.thread[i]) continue;
      const size_t k = thread_position(parallel(i));
      // A replicated reader runs in every thread, even where a check of its loop would exclude the thread.
      if (k < mine_.size() && plan_.is_replicated(mine_[k])) continue;
      const auto own = k < mine_.size() ? value_at(k) : std::optional<Form>();
      result_.thread[i] = own && is_equal(view.algebra, at.value(loop_[i]), *own);
    }
  }

  // A view knows that its loops run, so no extent is 0 there. Without that, the extents of a serial loop may differ.
  //
  //   n*m is 48 and m is 16: in a loop of n - 3 everything holds, also that n - 3 is 1
  void compare_outside() {
    if (compared_.empty()) return;
    ViewState state = state_at_elements(plan_, consumer_);
    StatementView view(plan_, consumer_, state);
    DomainValues at(g_, plan_.nest_plan, view.symbols, view.algebra, g_[leader_].tensor);
    for (size_t i : compared_) result_.if_any[i] = result_.shared[i] && !same_extent(view, at, loop_[i], mine_[i]);
  }

  void compare_in_nest() {
    StatementView view(plan_, consumer_);
    compare(view, [&](size_t i) { return std::optional(view.loop(i)); });
  }

  void compare_at_elements() {
    ViewState state = state_at_elements(plan_, consumer_);
    StatementView view(plan_, consumer_, state);
    stand_at_elements(plan_, consumer_, view);
    compare(view, [&](size_t i) {
      return view.own.known(mine_[i]) ? std::optional(view.own.value(mine_[i])) : std::nullopt;
    });
  }

  const KernelPlan& plan_;
  const Graph& g_;
  const OpId consumer_;
  const size_t operand_;
  const Nest& from_;
  const std::vector<DomainId>& mine_;
  const ValueId leader_;
  const size_t together_;
  const std::vector<DomainId>& loop_;
  std::vector<DomainPair> pairs_;  // domains of the operand and of the consumer that are read at one place
  std::set<size_t> compared_;      // serial loops whose extents a view compared
  Correspondence result_;
};

}  // namespace

ViewState state_at_elements(const KernelPlan& plan, OpId op) {
  return view_state(plan, op, std::vector<uint32_t>(plan.nest_of(op).path.size(), LoopNode::kNoNode));
}

void stand_at_elements(const KernelPlan& plan, OpId op, StatementView& view) {
  const Graph& g = *plan.graph;
  const Tensor& t = g.tensor_of(g[op].results[0]);
  std::vector<DomainId> free = root_of(t);
  // The broadcasts that a reshape makes stem from no root.
  for (DomainId d : t.logical)
    if (!g[d].def && g[d].iter_type == IterType::kBroadcast && position_in(free, d) == free.size()) free.push_back(d);
  stand_at(g, t, std::move(free), view);
}

bool reads_within(const KernelPlan& plan, OpId consumer, size_t operand, DomainId domain) {
  const Graph& g = *plan.graph;
  const ValueId v = g[consumer].operands[operand], leader = g[g[v].def].results[0];
  // An axis of the reader stays in its extent, and the launch checks that an axis that it reads at its own place has the
  // same, whatever forms say.
  const auto is_iteration = [&](DomainId d) { return g[d].iter_type == IterType::kIteration; };
  if (leader == v && !stretches(g[consumer].kind))
    for (const DomainPair& pair : domains_at_one_place(g, consumer, operand))
      if (pair.producer == domain && is_iteration(domain) && is_iteration(pair.consumer)) return true;
  ViewState state = state_at_elements(plan, consumer);
  StatementView view(plan, consumer, state);
  // An op that cuts reads a part of its root.
  const Tensor& t = g.tensor_of(g[consumer].results[0]);
  stand_at(g, t, t.logical, view);
  DomainValues at = leader == v ? view.feed(operand) : view.values_of_leader(v, view.feed(operand));
  if (!at.known(domain)) return false;
  const Form place = at.value(domain), extent = at.extent(domain);
  // The loops' facts may simplify this form, so it is made again behind them.
  DomainValues own(g, plan.nest_plan, view.symbols, view.algebra, g[g[consumer].results[0]].tensor);
  if (std::ranges::any_of(t.logical, [&](DomainId d) {
        return view.own.known(d) && is_equal(view.algebra, view.own.value(d), place) &&
               is_equal(view.algebra, own.extent(d), extent);
      }))
    return true;
  return view.algebra.prove_nonneg(place) && view.algebra.prove_less(place, extent);
}

bool walks_alike(const KernelPlan& plan, OpId consumer, size_t operand) {
  return Comparer(plan, consumer, operand).walks_alike();
}

const Correspondence& correspondence(KernelPlan& plan, OpId consumer, size_t operand) {
  const auto key = std::pair(consumer, operand);
  const auto it = plan.correspondences.find(key);
  if (it != plan.correspondences.end()) return it->second;
  return plan.correspondences.emplace(key, Comparer(plan, consumer, operand).run()).first->second;
}

}  // namespace fusebox
