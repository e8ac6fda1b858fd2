// Collects the conditions under which a statement runs at a loop point.
#include <algorithm>
#include <optional>

#include "ir/domain/domain.h"
#include "passes/plan/plan_queries.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

std::vector<DomainCheck> domain_checks(const KernelPlan& plan, StatementView& view, DomainValues& values) {
  const Graph& g = *plan.graph;
  std::vector<DomainCheck> result;
  for (DomainCheck check : values.checks()) {
    if (g[check.domain].iter_type == IterType::kReduction && plan.defects().has(Defect::kReductionUnchecked)) continue;
    if (plan.defects().has(Defect::kPredicateOffByOne))
      check.extent = view.algebra.add(check.extent, view.algebra.constant(1));
    result.push_back(check);
  }
  return result;
}

namespace {

// The difference of the two sides, nonnegative exactly if the condition holds. Nothing for conditions of other kinds.
std::optional<Form> slack(IndexAlgebra& algebra, const Condition& c) {
  if (c.guard) return std::nullopt;
  if (c.compare == OpKind::kGe) return algebra.sub(c.value, c.bound);
  if (c.compare == OpKind::kLt) return algebra.sub(algebra.sub(c.bound, c.value), algebra.constant(1));
  return std::nullopt;
}

// Drops each condition that another one implies. The input of a split in range implies its outer output in range.
void drop_implied(IndexAlgebra& algebra, std::vector<Condition>& conditions) {
  for (size_t i = conditions.size(); i-- > 0;) {
    const auto mine = slack(algebra, conditions[i]);
    if (!mine) continue;
    const bool is_implied = std::ranges::any_of(conditions, [&](const Condition& other) {
      if (&other == &conditions[i]) return false;
      const auto known = slack(algebra, other);
      return known && algebra.prove_nonneg(*mine, {&*known, 1});
    });
    if (is_implied) conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<Condition> all_conditions(const KernelPlan& plan, StatementView& view, StatementKind kind) {
  const Graph& g = *plan.graph;
  IndexAlgebra& algebra = view.algebra;
  std::vector<Condition> result;
  const auto& loop = loop_of(g.tensor_of(g[view.op].results[0]));
  // A launch may be larger than a loop, because a loop of another tensor sets its extent.
  for (size_t i = 0; i < view.path.size(); ++i) {
    if (view.path[i] == LoopNode::kNoNode || !is_thread(plan.tree.nodes[view.path[i]].parallel)) continue;
    // The condition compares the thread's own index. The form of the loop would not do: a loop of one iteration has
    // form 0 in every thread.
    const ParallelType p = plan.tree.nodes[view.path[i]].parallel;
    if (plan.is_replicated(loop[i]) && !plan.has_place_for(plan.nest_of(view.op), p) &&
        !plan.defects().has(Defect::kReplicatedChecked))
      continue;
    const auto extent = algebra.constant_value(view.own.extent(loop[i]));
    if (!plan.is_exact(p) && !(extent && *extent > 0 && extent == plan.largest_launch.at(p)) &&
        !plan.defects().has(Defect::kThreadLoopUnchecked))
      result.push_back({OpKind::kLt, Form{}, view.own.extent(loop[i]), p, CheckKind::kLoopExtent, loop[i],
                        CheckReason::kLaunchLarger});
  }
  // A stage of a reduction gives every element of its axes, also one that no element of the operand is part of: the next
  // stage reads it. So the checks of the axes that it was split from concern what it reads, not what it gives.
  const auto stages = demands(g[view.op].kind, kReduction) && kind != StatementKind::kMain
                          ? op_transforms(g, g.tensor_of(g[view.op].results[0]))
                          : std::vector<TransformId>();
  const auto is_above = [&](DomainId d) {
    return std::ranges::any_of(stages, [&](TransformId id) { return g[id].inputs[0] == d; });
  };
  for (const DomainCheck& check : domain_checks(plan, view, view.own)) {
    if (is_above(check.domain)) continue;
    const CheckReason reason = view.own.reason(check.domain);
    if (check.lower)
      result.push_back({OpKind::kGe, check.value, Form{}, std::nullopt, CheckKind::kDomain, check.domain, reason});
    result.push_back({OpKind::kLt, check.value, check.extent, std::nullopt, CheckKind::kDomain, check.domain, reason});
  }
  bool is_global = false, is_shared = false, reads_expanded = false;
  for (ValueId v : g[view.op].results) {
    is_global |= plan.buffers[v.index].memory == MemoryType::kGlobal;
    is_shared |= plan.buffers[v.index].memory == MemoryType::kShared;
  }
  for (ValueId v : g[view.op].operands)
    if (v && g.is_tensor(v))
      for (DomainId d : g.tensor_of(v).logical) reads_expanded |= static_cast<bool>(g[d].expanded);
  // An axis that is expanded to extent 0 has no element to store or to read.
  if (is_global || reads_expanded)
    for (DomainId d : logical_without_reductions(g, g.tensor_of(g[view.op].results[0]))) {
      if (!g[d].expanded) continue;
      const Form size = view.own.size(d);
      if (!algebra.prove_less(Form{}, size))
        result.push_back({OpKind::kNe, size, Form{}, {}, CheckKind::kDomain, d, CheckReason::kExpanded});
    }
  // A value in memory that several threads see is stored once: along each dimension that this nest leaves out, index 0
  // stores. A reduction accumulates in memory of its own thread, so only its final statement stores.
  if (demands(g[view.op].kind, kReduction) && kind != StatementKind::kFinal) return result;
  // The final statement leaves the reduction loops out. A broadcast that was split and merged with a reduced axis then
  // has no value, so iteration 0 of its remaining loop stores.
  if (kind == StatementKind::kFinal)
    for (size_t i = 0; i < view.path.size(); ++i) {
      if (view.path[i] == LoopNode::kNoNode || g[loop[i]].iter_type != IterType::kBroadcast) continue;
      const auto of = leaves(g, loop[i]);
      if (std::all_of(of.begin(), of.end(),
                      [&](DomainId d) { return view.own.known(d) || plan.nest_plan.promoted.contains(d); }))
        continue;
      result.push_back(
          {OpKind::kLt, view.loop(i), algebra.constant(1), {}, CheckKind::kDomain, loop[i], CheckReason::kSplitInput});
    }
  // Threads along a replicated loop compute the same value. If the allocation has no place for the loop, they share an
  // element.
  for (size_t i = 0; is_shared && i < view.path.size(); ++i) {
    if (view.path[i] == LoopNode::kNoNode || !plan.is_replicated(loop[i])) continue;
    const ParallelType p = plan.tree.nodes[view.path[i]].parallel;
    const auto has_place = [&](ValueId v) {
      const auto& places = plan.buffers[v.index].places;
      return std::find(places.begin(), places.end(), loop[i]) != places.end();
    };
    if (is_thread(p) && is_block(p) && !std::all_of(g[view.op].results.begin(), g[view.op].results.end(), has_place))
      result.push_back({OpKind::kEq, Form{}, Form{}, p, CheckKind::kThread, {}, CheckReason::kOneThread});
  }
  // The results of an exchange between blocks, and what depends on them, exist in the block that came last.
  std::vector<ParallelType> combined;
  if (const OpId last = plan.last_block_of(view.op))
    for (ParallelType p : plan.exchanges.at(last).threads)
      if (is_grid(p)) combined.push_back(p);
  for (ParallelType p : combined)
    if (!plan.defects().has(Defect::kLastBlockUnguarded))
      result.push_back({OpKind::kEq, Form{}, Form{}, p, CheckKind::kLastBlock, {}, CheckReason::kLastBlock});
  for (ParallelType p : plan.used_threads)
    if (std::ranges::count(combined, p) == 0 && (is_global || (is_shared && is_block(p))) && !view.thread_loop(p) &&
        !plan.defects().has(Defect::kThreadZeroUnchecked))
      result.push_back({OpKind::kEq, Form{}, Form{}, p, CheckKind::kThread, {}, CheckReason::kOneThread});
  return result;
}

// Whether the form adds up products of loops, sizes and their quotients. It is then nonnegative for all threads, also
// for those that are no point of the nest: a proof in the nest relies on loops that run.
bool is_sum_of_sizes(const Graph& g, IndexAlgebra& algebra, Form form) {
  if (algebra.constant_part(form) < 0) return false;
  const auto is_good = [&](AtomId id) {
    const AtomView atom = algebra.atom(id);
    switch (atom.kind) {
      case AtomKind::kLoop:
        return true;
      case AtomKind::kSymbol: {
        const auto p = parameter_of(g, atom.id);
        return p && p->scalar && g[p->scalar].def && g[g[p->scalar].def].kind == OpKind::kSize;
      }
      case AtomKind::kDigit:
        // A thread that is no point may divide by 0, and a GPU then gives anything.
        return is_sum_of_sizes(g, algebra, atom.whole) && algebra.is_constant(atom.divisor) &&
               (!atom.range || algebra.is_constant(*atom.range));
      case AtomKind::kNamed:
        return is_sum_of_sizes(g, algebra, atom.args[0]);
      case AtomKind::kXor:
      case AtomKind::kQuotient:
      case AtomKind::kRemainder:
      case AtomKind::kMin:
      case AtomKind::kMax:
      case AtomKind::kSum:
      case AtomKind::kProduct:
        return false;
    }
    return false;
  };
  return std::ranges::all_of(algebra.terms(form), [&](const TermView& term) {
    const std::vector<AtomId> factors(term.factors.begin(), term.factors.end());
    return term.coefficient >= 0 && std::ranges::all_of(factors, is_good);
  });
}

// Whether the extent of `loop` is at least 1 wherever the condition holds: its bound is then at least 1. Asked outside of
// the nest, where a loop may have no iteration.
bool implies_iterations(const KernelPlan& plan, StatementView& view, const Condition& condition, DomainId loop) {
  const Graph& g = *plan.graph;
  if (condition.guard || condition.compare != OpKind::kLt || !condition.domain ||
      g[condition.domain].tensor != g[loop].tensor || condition.reason == CheckReason::kExpanded ||
      !is_sum_of_sizes(g, view.algebra, condition.value))
    return false;
  // The bound is the domain's extent, also outside of the nest.
  if (!(condition.bound == view.own.extent(condition.domain))) return false;
  OpenExtents open(plan);
  DomainValues extents = open.of(g[g[loop].tensor].value);
  const Form bound = extents.extent(condition.domain);
  const Form extent = extents.extent(loop);
  // In the nest min(%n, 1) is 1, as its loop runs, and a check against 1 says nothing of %n.
  if (open.algebra.to_string(bound) != view.algebra.to_string(condition.bound)) return false;
  open.algebra.assume_le(open.algebra.constant(1), bound, "the statement checks it");
  return open.algebra.prove_less(Form{}, extent);
}

// A dimension launches one thread where its loops have no iteration. A statement that does nothing there needs no check
// of the loop. An unswitched loop takes the other conditions at its last point, where they do not say that a loop has
// an iteration, so there the check stays.
void drop_own_dimensions(const KernelPlan& plan, StatementView& view, std::vector<Condition>& conditions) {
  const auto is_unswitched = [&](uint32_t node) {
    return node != LoopNode::kNoNode && plan.parallel_of(node) == ParallelType::kUnswitch;
  };
  if (std::ranges::any_of(view.path, is_unswitched)) return;
  for (size_t i = conditions.size(); i-- > 0;) {
    const Condition& c = conditions[i];
    if (c.kind != CheckKind::kLoopExtent || !plan.exact_launch.at(*c.guard)) continue;
    const auto implies = [&](const Condition& other) { return implies_iterations(plan, view, other, c.domain); };
    if (std::ranges::any_of(conditions, implies)) conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

std::optional<LinearForm> rise_along(IndexAlgebra& algebra, const Condition& check, uint32_t node) {
  if (check.guard || check.compare != OpKind::kLt || check.kind != CheckKind::kDomain) return std::nullopt;
  auto rise = algebra.linear_in(check.value, static_cast<int>(node));
  return rise && algebra.prove_nonneg(rise->coefficient) ? rise : std::nullopt;
}

bool holds_up_to(IndexAlgebra& algebra, const Condition& check, const LinearForm& rise, int64_t index) {
  const Form value = algebra.add(algebra.mul(rise.coefficient, algebra.constant(index)), rise.rest);
  return algebra.prove_less(value, check.bound);
}

std::vector<Form> forms_that_hold(IndexAlgebra& algebra, const std::vector<Condition>& conditions) {
  std::vector<Form> result;
  for (const Condition& c : conditions)
    if (const auto form = slack(algebra, c)) result.push_back(*form);
  return result;
}

void leave_chunks_out(const KernelPlan& plan, StatementView& view, std::vector<Condition>& conditions) {
  const auto& loop = loop_of(plan.graph->tensor_of((*plan.graph)[view.op].results[0]));
  IndexAlgebra& algebra = view.algebra;
  for (Condition& c : conditions) {
    if (!slack(algebra, c) || c.begins > 0) continue;
    for (size_t i = loop.size(); i-- > 0;) {
      if (view.path[i] == LoopNode::kNoNode || !is_real_loop(plan.parallel_of(view.path[i]))) continue;
      const auto extent = algebra.constant_value(view.own.extent(loop[i]));
      const auto value = algebra.linear_in(c.value, static_cast<int>(view.path[i]));
      const auto step = value ? algebra.constant_value(value->coefficient) : std::nullopt;
      int64_t chunk = 0;
      if (!extent || !step || *extent < 1 || *step < 1 || __builtin_mul_overflow(*extent, *step, &chunk)) continue;
      if (plan.defects().has(Defect::kChunkAlone)) chunk = *step;
      if (algebra.divides(chunk, algebra.sub(c.bound, value->rest))) c.value = value->rest;
    }
  }
}

std::vector<Condition> conditions_of(const KernelPlan& plan, StatementView& view, StatementKind kind) {
  std::vector<Condition> conditions = all_conditions(plan, view, kind);
  drop_implied(view.algebra, conditions);
  drop_own_dimensions(plan, view, conditions);
  return conditions;
}

}  // namespace fusebox
