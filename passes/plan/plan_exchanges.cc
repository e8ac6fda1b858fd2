// Decides which blocks have the result of a reduction across blocks, and which rows the lanes of a warp combine
// (warp_rows.h).
//
// The block that comes last combines the parts of all blocks. If only it needs the result, no block waits for another,
// and the grid may have any size. Ops that depend on the result then run in that block alone:
//
//   y = sum x over [0]            y is stored by the last block of its columns
//   m = y / n                     the last block too: m has no loop along the grid's dimension
//   z = x - broadcast m           runs in all blocks, so all must have y: they wait at a barrier of the grid
//
// The last block is not enough either inside a loop, where a block may come twice before another has come once, and
// where an op needs the results of two exchanges, whose last blocks may differ.
//
// The blocks of a cluster run together, and reach one another's shared memory. If they are the blocks that a reduction
// combines, all of them have its result, and no block of another cluster is waited for.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"
#include "passes/plan/warp_rows.h"

namespace fusebox {
namespace {

// Whether the reduction's exchange stands in a loop that may run more than once.
bool is_in_loop(const KernelPlan& plan, const Nest& nest) {
  const Graph& g = *plan.graph;
  const auto& loop = plan.loops_of(nest.op);
  StatementView view(plan, nest.op, path_around_reduction(plan, nest.op));
  for (size_t i = 0; i < first_reduction_loop(g, plan.nest_plan, nest); ++i) {
    const ParallelType p = plan.parallel_of(nest.path[i]);
    // A loop of one iteration does not stand in the kernel, unless it has strips or branches.
    const bool is_left_out = view.algebra.constant_value(view.own.extent(loop[i])) == 1 &&
                             p != ParallelType::kUnswitch && !plan.strips.contains(nest.path[i]);
    if (is_real_loop(p) && !is_left_out) return true;
  }
  return false;
}

// The ops that depend on the reduction's result before it reaches global memory, in the order of their ids. Nothing if
// one of them needs it in another block than the last.
std::optional<std::vector<OpId>> readers_of(const KernelPlan& plan, OpId reduction, const Exchange& exchange) {
  const Graph& g = *plan.graph;
  std::set<OpId> readers;
  std::vector<OpId> pending{reduction};
  while (!pending.empty()) {
    const OpId op = pending.back();
    pending.pop_back();
    for (ValueId v : g[op].results) {
      // A barrier of the grid stands between a store to global memory and its readers (plan_syncs.cc).
      if (plan.buffer_of(v).memory == MemoryType::kGlobal) continue;
      for (OpId reader : plan.nest_plan.readers[v.index]) {
        const auto& path = plan.nest_of(reader).path;
        const bool is_elsewhere = std::ranges::any_of(path, [&](uint32_t n) {
          const ParallelType p = plan.parallel_of(n);
          return is_thread(p) && is_grid(p) && std::ranges::count(exchange.threads, p) > 0;
        });
        if (is_elsewhere && plan.defects().has(Defect::kLastBlockForAll)) continue;
        if (is_elsewhere || demands(g[reader].kind, kReduction) || plan.last_block_of(reader)) return std::nullopt;
        if (readers.insert(reader).second) pending.push_back(reader);
      }
    }
  }
  return std::vector<OpId>(readers.begin(), readers.end());
}

// Whether the reduction combines the blocks of a cluster, and no other blocks.
bool is_in_cluster(const KernelPlan& plan, const Exchange& exchange) {
  if (!plan.cluster || std::ranges::count(exchange.threads, plan.cluster->axis) == 0) return false;
  return std::ranges::count_if(exchange.threads, is_grid) == 1 || plan.defects().has(Defect::kClusterForTwoAxes);
}

}  // namespace

KernelPlan plan_exchanges(KernelPlan plan) {
  for (auto& [op, exchange] : plan.exchanges) {
    exchange.lanes = lanes_of(plan, exchange);
    if (!exchange.is_grid) continue;
    if ((exchange.is_cluster = is_in_cluster(plan, exchange))) continue;
    if (is_in_loop(plan, plan.nest_of(op)) && !plan.defects().has(Defect::kLastBlockInLoop)) continue;
    const auto readers = readers_of(plan, op, exchange);
    if (!readers) continue;
    exchange.is_last = true;
    exchange.readers = *readers;
  }
  return plan;
}

// A barrier of the grid needs all blocks on the GPU at once, and nothing tells how many clusters it holds.
KernelPlan check_clusters(KernelPlan plan) {
  if (!plan.cluster) return plan;
  const auto refuse = [&](const std::string& place) {
    throw Error(ErrorCode::kIllegalCluster,
                "blocks in clusters wait for all blocks of the grid; leave the step `cluster` out, or reduce along " +
                    std::string(text(plan.cluster->axis)) + " alone",
                place);
  };
  for (const auto& [op, exchange] : plan.exchanges)
    if (exchange.is_grid && !exchange.is_cluster && !exchange.is_last)
      refuse(plan.place_of((*plan.graph)[op].results[0]));
  if (std::ranges::any_of(plan.sync_points, [](const SyncPoint& s) { return s.scope == SyncScope::kGrid; }))
    refuse("@" + plan.graph->name);
  return plan;
}

}  // namespace fusebox
