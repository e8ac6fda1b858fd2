// Each stage of the kernel plan, looked at in the plan it returns.
#include "passes/plan/plan_stages.h"

#include <gtest/gtest.h>

#include "ir/module/module.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/plan/correspondence.h"
#include "passes/plan/print_plan.h"
#include "passes/plan/statement_view.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox {
namespace {

Graph scheduled(std::string_view text) {
  const Module m = parse_module(text);
  Graph g = m.graphs[0];
  if (!m.step_lists.empty()) apply_steps(g, m.step_lists[0].steps);
  return g;
}

ValueId named(const Graph& g, std::string_view name) {
  for (uint32_t i = 0; i < g.values.size(); ++i)
    if (g.values[i].name == name) return ValueId(i);
  ADD_FAILURE() << "no value " << name;
  return {};
}

constexpr std::string_view kRows = R"(fusion @rows {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %f = exp %x
  %y = sum %f over [1]
  output %y
}
steps @rows {
  split %y.i1 by 128 -> o, t
  parallelize %y.i0 grid.x
  parallelize %y.t block.x
}
)";
// The same with the loops of %y around %f.
const std::string kInlinedRows = [] {
  std::string text(kRows);
  text.insert(text.find("  parallelize"), "  transform_like %y to []\n");
  return text.insert(text.rfind("}\n"), "  parallelize_like %y to []\n  inline_most of []\n");
}();

TEST(PlanThreads, KnowsEachDimensionAndItsLargestLaunch) {
  const Graph g = scheduled(kRows);
  const KernelPlan plan = plan_threads(KernelPlan(g));
  EXPECT_EQ(plan.used_threads, (std::set{ParallelType::kGridX, ParallelType::kBlockX}));
  EXPECT_EQ(plan.largest_launch.at(ParallelType::kBlockX), 128);
  EXPECT_EQ(plan.largest_launch.at(ParallelType::kGridX), std::nullopt);
  EXPECT_TRUE(plan.exact_launch.at(ParallelType::kGridX));
}

TEST(PlanThreads, ALoopOfAnotherExtentMakesTheLaunchInexact) {
  const Graph g = scheduled(R"(fusion @two {
  %x = input f32[64] contiguous
  %z = input f32[32] contiguous
  %y = exp %x
  %w = exp %z
  output %y
  output %w
}
steps @two {
  parallelize %y.i0 block.x
  parallelize %w.i0 block.x
}
)");
  const KernelPlan plan = plan_threads(KernelPlan(g));
  EXPECT_FALSE(plan.exact_launch.at(ParallelType::kBlockX));
  EXPECT_EQ(plan.largest_launch.at(ParallelType::kBlockX), 64);
}

TEST(PlanBuffers, OutputsAreParametersAndIntermediatesLiveWhereTheyAreShared) {
  const Graph g = scheduled(std::string(kRows).insert(kRows.rfind("}\n"), "  set_memory_type %f in shared\n"));
  const KernelPlan plan = plan_buffers(plan_threads(KernelPlan(g)));
  EXPECT_TRUE(plan.buffer_of(named(g, "y")).is_parameter);
  const Buffer& f = plan.buffer_of(named(g, "f"));
  EXPECT_EQ(f.memory, MemoryType::kShared);
  EXPECT_EQ(f.home, LoopNode::kNoNode);
  EXPECT_EQ(f.places.size(), 2u);
}

TEST(PlanBuffers, AnOutputInPlaceIsStoredInItsInput) {
  const Graph g = scheduled("fusion @a {\n  %x = input f32[4] contiguous\n  %y = neg %x\n  output %y alias %x\n}\n");
  const KernelPlan plan = plan_buffers(plan_threads(KernelPlan(g)));
  EXPECT_EQ(plan.buffer_of(named(g, "y")).storage, named(g, "x"));
}

TEST(PlanReplicas, ABroadcastThatOtherThreadsReadIsComputedByEach) {
  const Graph g = scheduled(R"(fusion @r {
  %x = input f32[7, 32] contiguous
  %m = max %x over [1]
  %b = broadcast %m mask [0, 1]
  %d = sub %x, %b
  %e = exp %b
  %o = add %d, %e
  output %o
}
steps @r {
  parallelize %o.i0 grid.x
  parallelize %o.i1 block.x
  parallelize_like %o to []
}
)");
  const KernelPlan plan = plan_replicas(plan_empty_threads(plan_buffers(plan_threads(KernelPlan(g)))));
  const auto& b = g.tensor_of(named(g, "b")).logical;
  EXPECT_TRUE(plan.is_replicated(b[1]));
  EXPECT_FALSE(plan.is_replicated(b[0]));
}

TEST(PlanLoops, AReductionStandsBetweenItsInitAndItsFinal) {
  const Graph g = scheduled(kInlinedRows);
  const KernelPlan plan = plan_kernel(g);
  std::vector<StatementKind> kinds;
  for (const Statement& s : plan.tree.statements)
    if (g[s.op].kind == OpKind::kSum) kinds.push_back(s.kind);
  EXPECT_EQ(kinds, (std::vector{StatementKind::kInit, StatementKind::kMain, StatementKind::kFinal}));
}

constexpr std::string_view kShared = R"(fusion @s {
  %x = input f32[64] contiguous
  %a = exp %x
  %b = permute %a dims [0]
  %c = neg %b
  %d = exp %c
  output %d
}
steps @s {
  set_memory_type %a in shared
  set_memory_type %c in shared
  parallelize %a.i0 block.x
  split %b.i0 by 8 -> o, t
  parallelize %b.o block.x
  split %c.i0 by 8 -> o, t
  parallelize %c.o block.x
  parallelize %d.i0 block.x
}
)";

// The program with a step more.
Graph with_step(std::string text, const std::string& step) {
  text.insert(text.rfind("}\n"), "  " + step + "\n");
  return scheduled(text);
}

void expect_syncs(const KernelPlan& plan, size_t count, SyncScope scope) {
  EXPECT_EQ(plan.sync_points.size(), count) << print_plan(plan);
  for (const SyncPoint& p : plan.sync_points) EXPECT_EQ(p.scope, scope);
}

TEST(PlanShared, BuffersWhoseLivesDoNotMeetLieOnOneAnother) {
  const Graph g = with_step(std::string(kShared), "set_memory_type %b in shared");
  const KernelPlan plan = plan_kernel(g);
  EXPECT_EQ(plan.buffer_of(named(g, "a")).slot, plan.buffer_of(named(g, "c")).slot);
  EXPECT_NE(plan.buffer_of(named(g, "a")).slot, plan.buffer_of(named(g, "b")).slot);
  EXPECT_EQ(plan.shared_slots.size(), 2u);
}

TEST(PlanSyncs, ABarrierStandsWhereAnotherThreadReads) {
  const Graph g = with_step(std::string(kShared), "set_memory_type %b in shared");
  // Before b and d, whose threads read what others made, and before c, which takes the place of a.
  expect_syncs(plan_kernel(g), 3, SyncScope::kBlock);
}

TEST(PlanSyncs, AGridBarrierStandsWhereAnotherBlockReads) {
  std::string text(kShared);
  text.replace(text.find("%a in shared"), 12, "%a in global");
  text.replace(text.find("%c in shared"), 12, "%c in global");
  for (size_t i; (i = text.find("block.x")) != std::string::npos;) text.replace(i, 7, "grid.x");
  const Graph g = with_step(text, "set_memory_type %b in global");
  expect_syncs(plan_kernel(g), 2, SyncScope::kGrid);
}

TEST(PlanCascades, ALongSerialSumOfFloatsRunsInStrips) {
  const Graph g =
      scheduled("fusion @l {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = sum %x over [0]\n  output %y\n}\n");
  const KernelPlan plan = plan_kernel(g);
  ASSERT_EQ(plan.cascades.size(), 1u);
  EXPECT_EQ(plan.cascades.begin()->second.levels, 1);
  EXPECT_TRUE(plan.cascades.begin()->second.is_compensated);
  EXPECT_EQ(plan.strips.begin()->second, 32);
}

TEST(PlanCascades, AFewStripsNeedNoErrorTermAndAWelfordHasLevels) {
  const auto cascade = [](const std::string& body) {
    const Graph g = scheduled("fusion @l {\n" + body + "}\n");
    return plan_kernel(g).cascades.begin()->second;
  };
  EXPECT_FALSE(cascade("  %x = input f32[512] contiguous\n  %y = sum %x over [0]\n  output %y\n").is_compensated);
  EXPECT_TRUE(cascade("  %x = input f32[513] contiguous\n  %y = sum %x over [0]\n  output %y\n").is_compensated);
  const Cascade of_set = cascade(
      "  %n = size\n  %x = input f32[%n] contiguous\n  %a, %b, %c = welford %x over [0]\n  output %a\n  output %b\n"
      "  output %c\n");
  EXPECT_EQ(of_set.levels, 4);
  EXPECT_FALSE(of_set.is_compensated);
}

// The exchange of %y in a program that reduces %x over the grid.
Exchange exchange_of(std::string_view value, const std::string& body, const std::string& steps) {
  const Graph g = scheduled("fusion @f {\n" + body + "}\nsteps @f {\n" + steps + "}\n");
  return plan_kernel(g).exchanges.at(g[named(g, value)].def);
}

TEST(PlanExchanges, TheLastBlockRunsWhatDependsOnTheResult) {
  const Exchange e = exchange_of("y",
                                 "  %x = input f32[4] contiguous\n  %y = sum %x over [0]\n  %z = neg %y\n"
                                 "  %w = exp %z\n  output %w\n",
                                 "  parallelize %y.i0 grid.x\n");
  EXPECT_TRUE(e.is_grid && e.is_last);
  EXPECT_EQ(e.readers.size(), 2u);
}

TEST(PlanExchanges, AllBlocksGetAResultThatTheyRead) {
  const Exchange e = exchange_of("y",
                                 "  %x = input f32[4] contiguous\n  %y = sum %x over [0]\n"
                                 "  %b = broadcast %y mask [1]\n  %z = sub %x, %b\n  output %z\n",
                                 "  parallelize %y.i0 grid.x\n  parallelize %z.i0 grid.x\n");
  EXPECT_TRUE(e.is_grid);
  EXPECT_FALSE(e.is_last);
}

TEST(PlanExchanges, BlocksOfALoopWaitForEachOther) {
  const std::string body = "  %x = input f32[3, 4] contiguous\n  %y = sum %x over [1]\n  output %y\n";
  EXPECT_FALSE(exchange_of("y", body, "  parallelize %y.i1 grid.x\n").is_last);
  EXPECT_TRUE(exchange_of("y", body, "  parallelize %y.i1 grid.x\n  parallelize %y.i0 block.x\n").is_last);
}

TEST(PlanExchanges, TwoResultsInOneOpAreOfDifferentLastBlocks) {
  const std::string body =
      "  %x = input f32[4] contiguous\n  %y = sum %x over [0]\n  %z = max %x over [0]\n  %w = add %y, %z\n"
      "  output %w\n";
  const std::string steps = "  parallelize %y.i0 grid.x\n  parallelize %z.i0 grid.x\n";
  EXPECT_TRUE(exchange_of("y", body, steps).is_last);
  EXPECT_FALSE(exchange_of("z", body, steps).is_last);
}

TEST(PlanStatements, AccessesAndChecksAreForms) {
  const Graph g = scheduled(kInlinedRows);
  const KernelPlan plan = plan_kernel(g);
  const OpId f = g[named(g, "f")].def;
  for (size_t i = 0; i < plan.statements.size(); ++i) {
    const Statement& s = plan.tree.statements[i];
    if (s.op != f) continue;
    StatementView view(plan, s);
    ASSERT_EQ(plan.statements[i].reads.size(), 1u);
    EXPECT_EQ(plan.statements[i].reads[0].value, named(g, "x"));
    ASSERT_EQ(plan.statements[i].writes.size(), 1u);
    EXPECT_NE(print_form(plan, view.algebra, plan.statements[i].reads[0].index), "0");
  }
  ASSERT_EQ(plan.exchanges.size(), 1u);
  EXPECT_EQ(plan.exchanges.begin()->second.threads, (std::vector{ParallelType::kBlockX}));
  EXPECT_FALSE(plan.exchanges.begin()->second.is_grid);
}

TEST(PlanStatements, ALocalBufferWithoutAConstantSizeIsRefused) {
  std::string text(kRows);
  const Graph g = scheduled(text.replace(text.find("  parallelize %y.i0 grid.x\n"), 27, ""));
  try {
    plan_kernel(g);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kIllegalAllocation);
    EXPECT_EQ(e.place, "%f");
  }
}

TEST(PlanStorage, SetsVectorCopiesAndLeavesAccessesToPlanStatements) {
  const Graph g = scheduled(R"(fusion @v {
  %x = input f32[64] contiguous
  %y = set %x
  output %y
}
steps @v {
  split %y.i0 by 4 -> o, v
  parallelize %y.v vectorize
}
)");
  const KernelPlan stored = plan_refusable(g);
  ASSERT_EQ(stored.statements.size(), 1u);
  ASSERT_TRUE(stored.statements[0].vector);
  EXPECT_EQ(stored.statements[0].vector->width, 4);
  EXPECT_TRUE(stored.statements[0].reads.empty());
  const KernelPlan plan = plan_statements(stored);
  EXPECT_EQ(plan.statements[0].reads.size(), 1u);
  EXPECT_EQ(print_plan(plan), print_plan(plan_kernel(g)));
}

// A form stays what it is while views of other statements, and other plans, are made.
TEST(StatementView, OneViewDoesNotInvalidateAnother) {
  const Graph g = scheduled(kInlinedRows);
  const KernelPlan plan = plan_kernel(g);
  StatementView f(plan, g[named(g, "f")].def);
  DomainValues fed = f.feed(0);
  const Form index = f.index_of(plan.buffer_of(named(g, "x")), fed);
  const std::string text = print_form(plan, f.algebra, index);
  StatementView y(plan, g[named(g, "y")].def);
  DomainValues other = y.feed(0);
  y.index_of(plan.buffer_of(named(g, "f")), other);
  plan_kernel(g);
  EXPECT_EQ(print_form(plan, f.algebra, index), text);
}

// The views of a plan serve another plan of the same graph.
TEST(StatementView, KnownViewsChangeNothing) {
  const Graph g = scheduled(kInlinedRows);
  KernelPlan first = plan_refusable(g);
  for (const Nest& nest : first.nest_plan.nests) StatementView(first, nest.op);
  const KernelPlan second = plan_refusable(g, {}, first.views);
  EXPECT_EQ(second.views, first.views);
  EXPECT_EQ(print_plan(plan_statements(second)), print_plan(plan_kernel(g)));
}

// Faults that check_plan must name.
TEST(CheckPlan, FindsWhatDoesNotHoldTogether) {
  const Graph g = scheduled(kInlinedRows);
  const KernelPlan good = plan_kernel(g);
  EXPECT_EQ(check_plan(good), std::nullopt);
  const auto fault = [&](auto change) {
    KernelPlan plan = good;
    change(plan);
    return check_plan(plan).has_value();
  };
  EXPECT_TRUE(fault([](KernelPlan& p) { p.used_threads.clear(); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.tree.top.push_back(p.tree.top[0]); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.tree.top.pop_back(); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.sync_points.insert({LoopNode::kNoNode, 99, SyncScope::kBlock}); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.accumulators.clear(); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.strips.clear(); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.statements.pop_back(); }));
  EXPECT_TRUE(fault([](KernelPlan& p) { p.statements[0].reads.clear(), p.statements[0].writes.clear(); }));
  EXPECT_TRUE(fault([&](KernelPlan& p) { p.buffers[named(g, "f").index] = Buffer(); }));
  EXPECT_TRUE(fault([&](KernelPlan& p) { p.buffers[named(g, "f").index].memory = MemoryType::kShared; }));
  EXPECT_TRUE(fault([&](KernelPlan& p) {
    for (const Statement& s : good.tree.statements)
      if (s.kind == StatementKind::kFinal) p.buffers[named(g, "f").index].home = s.path[0] == 0 ? 1 : 0;
    p.tree.nodes[0].parent = 1;
  }));
}

}  // namespace
}  // namespace fusebox
