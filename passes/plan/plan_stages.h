// The stages of lowering's plan, in the order in which plan_kernel runs them. Each takes a plan, reads what the stages
// before it decided, and returns the plan with its own members filled in.
//
//   KernelPlan p = plan_buffers(plan_threads(KernelPlan(g)));
//   p.buffer_of(y).memory == MemoryType::kShared
//
// A stage throws the coded error that says why a schedule is not legal; it names the tensor or the domain.
#pragma once

#include "passes/plan/kernel_plan.h"

namespace fusebox {

class StatementView;

// Which thread dimensions there are. Throws kIllegalSwizzle, kIllegalInline, kUnsupportedSchedule.
[[nodiscard]] KernelPlan plan_threads(KernelPlan plan);
// Where each tensor is kept. Throws kIllegalAllocation, kUnsupportedSchedule.
[[nodiscard]] KernelPlan plan_buffers(KernelPlan plan);
// The dimensions that are launched although every loop of theirs may be empty.
[[nodiscard]] KernelPlan plan_empty_threads(KernelPlan plan);
// The broadcast axes along which every thread computes the same.
[[nodiscard]] KernelPlan plan_replicas(KernelPlan plan);
// Changes nothing but what it has compared. Throws kIllegalInline, kIllegalExchange, kIllegalReduction,
// kIllegalVectorize where a reader would not get what was made for it.
[[nodiscard]] KernelPlan check_sharing(KernelPlan plan);
// The loop tree. Throws kIllegalOrder, kIllegalAliasOrder.
[[nodiscard]] KernelPlan plan_loops(KernelPlan plan);
// Which shared buffers lie on one another.
[[nodiscard]] KernelPlan plan_shared(KernelPlan plan);
// Where barriers stand.
[[nodiscard]] KernelPlan plan_syncs(KernelPlan plan);
// Which serial sums have partial sums, and in which strips their loops run.
[[nodiscard]] KernelPlan plan_cascades(KernelPlan plan);
// How much a thread keeps, what threads exchange, and which copies are vectorized. Throws kIllegalAllocation,
// kIllegalReduction, kIllegalVectorize. No later stage refuses a schedule.
[[nodiscard]] KernelPlan plan_storage(KernelPlan plan);
// What each statement checks, reads and writes.
[[nodiscard]] KernelPlan plan_statements(KernelPlan plan);

// The first thing that is wrong with a plan, or nothing; of one that plan_kernel made it finds nothing. Emission relies
// on it. A plan that plan_storage has not seen is checked as far as it goes.
std::optional<std::string> check_plan(const KernelPlan& plan);

// All of them. Throws what they throw, and kNotConcretized for a graph with symbolic axes.
KernelPlan plan_kernel(const Graph& scheduled, const PlanOptions& options = {});
// All up to plan_storage. Throws exactly where plan_kernel throws.
KernelPlan plan_refusable(const Graph& scheduled, const PlanOptions& options = {});

// Fills in at_home and accumulators_at.
void place_in_loops(KernelPlan& plan);
// The positions of the loops by which an accumulator is laid out.
std::vector<size_t> accumulator_places(const KernelPlan& plan, OpId op);

// The checks of a tensor's domains, whose values are given as the view's op sees them.
std::vector<DomainCheck> domain_checks(const KernelPlan& plan, StatementView& view, DomainValues& values);
// What must hold for the statement to run at a loop point. Needs the stages up to plan_replicas.
std::vector<Condition> conditions_of(const KernelPlan& plan, StatementView& view, StatementKind kind);
// The extent of the index of a scatter along its axis; its value where that is a constant.
Form scatter_extent(const KernelPlan& plan, StatementView& view);
std::optional<int64_t> scatter_count(const KernelPlan& plan, StatementView& view);

}  // namespace fusebox
