#include "passes/plan/warp_rows.h"

#include <algorithm>

#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

constexpr int64_t kWarp = 32;

// Whether the launch has one thread along the dimension, or none.
bool is_one_thread(const KernelPlan& plan, ParallelType p) {
  OpenExtents open(plan);
  for (const Nest& nest : plan.nest_plan.nests) {
    const auto& loop = plan.loops_of(nest.op);
    for (size_t i = 0; i < loop.size(); ++i) {
      if (plan.parallel_of(nest.path[i]) != p) continue;
      const Form extent = open.of((*plan.graph)[nest.op].results[0]).extent(loop[i]);
      if (!open.algebra.prove_less(extent, open.algebra.constant(2))) return false;
    }
  }
  return true;
}

}  // namespace

int64_t lanes_of(const KernelPlan& plan, const Exchange& exchange) {
  if (exchange.is_grid || std::ranges::count(exchange.threads, ParallelType::kBlockX) == 0) return 0;
  const auto largest = [&](ParallelType p) {
    const auto launch = plan.largest_launch.find(p);
    return launch == plan.largest_launch.end() ? std::nullopt : launch->second;
  };
  const auto lanes = largest(ParallelType::kBlockX);
  if (!lanes || *lanes < 2 || *lanes > kWarp || (*lanes & (*lanes - 1)) != 0) return 0;
  // The threads of a block, modulo a warp. An extent that is not known only multiplies them. One that is 0 is launched with
  // a thread, or not at all.
  int64_t threads = *lanes;
  for (ParallelType p : {ParallelType::kBlockY, ParallelType::kBlockZ})
    if (plan.used_threads.contains(p))
      if (const auto extent = largest(p)) threads = threads * (std::max<int64_t>(*extent, 1) % kWarp) % kWarp;
  if (threads != 0 && !plan.defects().has(Defect::kLanesMissing)) return 0;
  const auto is_along_lanes = [&](ParallelType p) {
    return p == ParallelType::kBlockX || plan.defects().has(Defect::kLanesOfOneAxis) || is_one_thread(plan, p);
  };
  return std::ranges::all_of(exchange.threads, is_along_lanes) ? *lanes : 0;
}

}  // namespace fusebox
