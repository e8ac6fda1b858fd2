// The stages of a plan, in the order of plan_kernel. A stage takes a plan, reads the decisions of the stages before it,
// and returns the plan with its own members filled in.
//
//   KernelPlan p = plan_buffers(plan_threads(KernelPlan(g)));
//   p.buffer_of(y).memory == MemoryType::kShared
//
// A stage throws a coded error that says why a schedule is not legal. The error names the tensor or the domain.
#pragma once

#include "passes/plan/kernel_plan.h"

namespace fusebox {

// Decides which thread dimensions there are. Throws kIllegalSwizzle, kIllegalInline, kIllegalCluster,
// kUnsupportedSchedule.
[[nodiscard]] KernelPlan plan_threads(KernelPlan plan);
// Decides where each tensor is kept. Throws kIllegalAllocation, kUnsupportedSchedule.
[[nodiscard]] KernelPlan plan_buffers(KernelPlan plan);
// Finds dimensions that launch at least one thread although every loop along them may be empty.
[[nodiscard]] KernelPlan plan_empty_threads(KernelPlan plan);
// Finds the broadcast axes along which every thread computes the same value.
[[nodiscard]] KernelPlan plan_replicas(KernelPlan plan);
// Checks that each reader gets the value that was made for it. It changes only the kept comparisons. Throws
// kIllegalInline, kIllegalExchange, kIllegalReduction, kIllegalVectorize.
[[nodiscard]] KernelPlan check_sharing(KernelPlan plan);
// Builds the loop tree. Throws kIllegalOrder, kIllegalAliasOrder.
[[nodiscard]] KernelPlan plan_loops(KernelPlan plan);
// Decides which shared buffers lie on one another.
[[nodiscard]] KernelPlan plan_shared(KernelPlan plan);
// Decides where barriers stand.
[[nodiscard]] KernelPlan plan_syncs(KernelPlan plan);
// Gives long serial sums their partial sums, and their loops strips.
[[nodiscard]] KernelPlan plan_cascades(KernelPlan plan);
// Decides how much memory a thread keeps, what threads exchange, and which copies are vectorized. Throws
// kIllegalAllocation, kIllegalReduction, kIllegalVectorize.
[[nodiscard]] KernelPlan plan_storage(KernelPlan plan);
// Decides which blocks have the result of an exchange between blocks, and which rows the lanes of a warp combine.
[[nodiscard]] KernelPlan plan_exchanges(KernelPlan plan);
// Checks that the blocks of a cluster wait for no other blocks. Throws kIllegalCluster.
[[nodiscard]] KernelPlan check_clusters(KernelPlan plan);
// Decides what each statement checks, reads and writes.
[[nodiscard]] KernelPlan plan_statements(KernelPlan plan);

// The first fault of a plan, or nothing. It finds none in a plan that plan_kernel made. Emission relies on it. A plan
// that plan_storage has not seen is checked as far as it goes.
std::optional<std::string> check_plan(const KernelPlan& plan);

// Runs all stages. Throws what they throw, kNotConcretized for a graph with symbolic axes, and kNotInKernel for an op
// that ATen alone computes.
KernelPlan plan_kernel(const Graph& scheduled, const PlanOptions& options = {});
// All up to plan_exchanges. Throws exactly where plan_kernel throws. `views` are those of a plan of the same graph without
// defects, whose axes are known to be replicated or not: what was worked out for them is not worked out again.
KernelPlan plan_refusable(const Graph& scheduled, const PlanOptions& options = {},
                          std::shared_ptr<KernelPlan::Views> views = nullptr);

// Fills in at_home and accumulators_at.
void place_in_loops(KernelPlan& plan);
// The positions of the loops that lay out an accumulator.
std::vector<size_t> accumulator_places(const KernelPlan& plan, OpId op);
// The threads that a reduction combines: those of its reduction loops, ascending.
std::vector<ParallelType> combined_threads(const KernelPlan& plan, OpId op);

}  // namespace fusebox
