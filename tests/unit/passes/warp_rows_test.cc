// Rows of part of a warp: which reductions their lanes combine, without shared memory and without a barrier.
#include "passes/plan/warp_rows.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <map>

#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan_stages.h"

namespace fusebox {
namespace {

// Sums of rows: `steps` schedule %y.
Graph scheduled(const std::string& steps, const std::string& shape = "[%m, 8]") {
  const Module m =
      parse_module("fusion @f {\n  %m, %n = size\n  %w = input f32[%n]\n  %x = input f32" + shape +
                   " contiguous\n  %y = sum %x over [1]\n  output %y\n  output %w\n}\nsteps @f {\n" + steps + "}\n");
  Graph g = m.graphs[0];
  apply(g, m.step_lists[0].steps);
  return g;
}

int64_t lanes(const Graph& g) {
  const KernelPlan plan = plan_refusable(g);
  EXPECT_EQ(plan.exchanges.size(), 1u);
  EXPECT_EQ(plan.exchanges.begin()->second.lanes, lanes_of(plan, plan.exchanges.begin()->second));
  return plan.exchanges.begin()->second.lanes;
}

std::string rows(const std::string& count, const std::string& z = "block.y") {
  return "  split %y.i0 by " + count + " -> b, z\n  parallelize %y.b on grid.x\n  parallelize %y.z on " + z + "\n";
}
const std::string kLanes = "  parallelize %y.i1 on block.x\n";

TEST(WarpRows, FillWarps) {
  EXPECT_EQ(lanes(scheduled(rows("4") + kLanes)), 8);
  EXPECT_EQ(lanes(scheduled(rows("16", "block.z") + kLanes)), 8);
  EXPECT_EQ(lanes(scheduled(rows("12") + kLanes)), 8);  // three warps
  EXPECT_EQ(lanes(scheduled(rows("16") + kLanes, "[%m, 2]")), 2);
}

TEST(WarpRows, OtherThreadsAreCombinedByTheBlock) {
  EXPECT_EQ(lanes(scheduled(rows("3") + kLanes)), 0);               // the last warp is not full
  EXPECT_EQ(lanes(scheduled(kLanes)), 0);                           // one row in a block
  EXPECT_EQ(lanes(scheduled(rows("16") + kLanes, "[%m, 6]")), 0);   // no power of two
  EXPECT_EQ(lanes(scheduled(rows("16") + kLanes, "[%m, 64]")), 0);  // whole warps, which need no memory either way
  EXPECT_EQ(lanes(scheduled(rows("16") + kLanes, "[%m, %n]")), 0);  // not known
  EXPECT_EQ(lanes(scheduled(rows("32", "block.x") + "  parallelize %y.i1 on block.y\n")), 0);
}

// Rows of 16 in two halves are combined along block.y too.
TEST(WarpRows, TwoThreadsAlongAnotherDimension) {
  const std::string halves =
      "  split %y.i1 by 8 -> w, l\n  parallelize %y.l on block.x\n  parallelize %y.w on block.y\n";
  EXPECT_EQ(lanes(scheduled(rows("16", "block.z") + halves, "[%m, 16]")), 0);
  EXPECT_EQ(lanes(scheduled(rows("16", "block.z") + halves, "[%m, 8]")), 8);
}

// The size is not known. A stated bound shows that there is one thread.
TEST(WarpRows, OneThreadByAStatedFact) {
  const std::string parts =
      "  split %y.i1 by 8 -> w, l\n  parallelize %y.l on block.x\n  parallelize %y.w on block.y\n";
  EXPECT_EQ(lanes(scheduled(rows("16", "block.z") + parts, "[%m, %n]")), 0);
  EXPECT_EQ(lanes(scheduled(rows("16", "block.z") + parts + "  assume [%n] at_most 8\n", "[%m, %n]")), 8);
  EXPECT_EQ(lanes(scheduled(rows("16", "block.z") + parts + "  assume [%n] at_most 9\n", "[%m, %n]")), 0);
}

TEST(WarpRows, HaveNoSharedMemory) {
  const auto ops = [](const Graph& g) {
    const Lowered low = lower(g);
    std::map<OpKind, int> count;
    for (const Op& op : low.kernel.ops) ++count[op.kind];
    const bool has_shared = std::ranges::any_of(low.kernel.ops, [](const Op& op) {
      return op.kind == OpKind::kAllocate && op.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kShared;
    });
    return std::array<int, 3>{count[OpKind::kWarpReduce], count[OpKind::kBlockReduce], has_shared ? 1 : 0};
  };
  EXPECT_EQ(ops(scheduled(rows("4") + kLanes)), (std::array{1, 0, 0}));
  EXPECT_EQ(ops(scheduled(rows("3") + kLanes)), (std::array{0, 1, 1}));
}

// A plan that names other lanes than hold its rows does not hold together.
TEST(WarpRows, AreCheckedInAPlan) {
  const Graph four = scheduled(rows("4") + kLanes), three = scheduled(rows("3") + kLanes);
  KernelPlan plan = plan_kernel(four);
  EXPECT_EQ(check_plan(plan), std::nullopt);
  Exchange& exchange = plan.exchanges.begin()->second;
  exchange.lanes = 0;  // the block combines them as well
  EXPECT_EQ(check_plan(plan), std::nullopt);
  for (const int64_t lanes : {4, 16, 7}) {
    exchange.lanes = lanes;
    EXPECT_TRUE(check_plan(plan)) << lanes;
  }
  KernelPlan other = plan_kernel(three);
  other.exchanges.begin()->second.lanes = 8;
  EXPECT_TRUE(check_plan(other));
}

}  // namespace
}  // namespace fusebox
