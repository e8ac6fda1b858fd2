// What a decision costs, as counts: how often a segment is made a fusion of its own, how many steps are applied to graphs,
// and how many kernel plans are made. They follow from the program alone, so a bound on them holds on every machine.
#include <gtest/gtest.h>

#include "ir/graph/compact.h"
#include "passes/automatic/plan_automatic.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "tests/support/automatic.h"
#include "tests/support/families.h"

namespace fusebox {
namespace {

using testing::Family;
using testing::family_inputs;
using testing::fusion_of;
using enum testing::Family;

AutomaticPlan planned(const Graph& g) {
  return plan_automatic(g, {.sizes = bind_sizes(g, family_inputs()), .memory = memory_classes(g, family_inputs())});
}

// The steps of the plan without those that say which segment an op is in.
int64_t schedule_steps(const AutomaticPlan& plan) {
  return std::ranges::count_if(plan.steps, [](const Step& s) { return s.kind != StepKind::kAssign; });
}

class PlanningCost : public ::testing::TestWithParam<Family> {};

// A fusion that one scheduler takes is extracted once and asked for vector widths once, with facts about sizes or without;
// its loops are written once, and what is tried besides is vectors and inlining.
TEST_P(PlanningCost, OfOneKernel) {
  const AutomaticPlan plan = planned(fusion_of(GetParam(), 20));
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_EQ(plan.work.extractions, 1);
  EXPECT_LE(plan.work.kernel_plans, 2);
  EXPECT_LE(plan.work.steps, schedule_steps(plan) + 16) << "the plan has " << schedule_steps(plan) << " steps";
}

// The cost of a plan grows with the fusion and not with its square. A stretch is halved until a scheduler takes it.
TEST_P(PlanningCost, GrowsWithTheFusion) {
  const AutomaticPlan plan = planned(fusion_of(GetParam(), 1000));
  const auto segments = static_cast<int64_t>(plan.decisions.size());
  EXPECT_LE(plan.work.extractions, 8 * segments);
  EXPECT_LE(plan.work.kernel_plans, 4 * segments);
  EXPECT_LE(plan.work.steps, schedule_steps(plan) + 32 * segments);
}

// A cut that is refused is tried again with less, and what is known of its stretches is known from the tries before. So
// nobody asks twice for a stretch, and there are no more of them than ends and beginnings.
TEST_P(PlanningCost, OfCutsThatAreTriedAgain) {
  const Graph g = fusion_of(GetParam(), 90);
  const AutomaticPlan plan = planned(g);
  const auto ops = static_cast<int64_t>(g[Graph::body()].ops.size());
  EXPECT_GE(plan.work.tried_cuts, 1);
  EXPECT_LE(plan.work.stretches, plan.decisions.size() == 1 ? 1 : 1 + ops * (ops + 1) / 2);
  EXPECT_LE(plan.work.extractions, plan.work.stretches + static_cast<int64_t>(plan.decisions.size()));
}

// The plan as a compilation makes it, of the fusion that rewrites have simplified.
AutomaticPlan planned_as_compiled(const Graph& g) {
  const Compiled compiled =
      compile(g, bind_sizes(g, family_inputs()), {.device = default_device(), .inputs = family_inputs()});
  return planned(compiled.concretized);
}

// The best cut of a fusion of about a hundred ops asks for few of its stretches, although there are thousands. A norm
// needs about eight questions: one for each stretch of the cut, one for each 16 ops of a long one, and the stretches
// that are too long. Each makes a fusion of a stretch at most.
TEST(PlanningBestCut, AsksForFewStretches) {
  for (int64_t ops : {85, 90, 100}) {
    SCOPED_TRACE(ops);
    const AutomaticPlan plan = planned_as_compiled(fusion_of(kNorms, ops));
    const auto segments = static_cast<int64_t>(plan.decisions.size());
    EXPECT_GE(segments, 2);
    EXPECT_LE(plan.work.stretches, 32 * segments);
    EXPECT_LE(plan.work.extractions, 16 * segments);
    EXPECT_LE(plan.work.kernel_plans, 2 * segments);
    EXPECT_LE(plan.work.steps, schedule_steps(plan) + 16 * segments);
  }
}

// Where nearly every stretch is refused, no more than a window of them is asked for behind each op.
TEST(PlanningBestCut, AsksForAWindowOfStretches) {
  const Graph g = fusion_of(kMoves, 90);
  const AutomaticPlan plan = planned(g);
  const auto ops = static_cast<int64_t>(g[Graph::body()].ops.size());
  EXPECT_LE(plan.work.stretches, 16 * ops);
  EXPECT_LE(plan.work.extractions, 8 * ops);
  EXPECT_LE(plan.work.kernel_plans, 2 * static_cast<int64_t>(plan.decisions.size()));
}

// The schedule of each segment is handed on: it is what its steps make of the segment.
TEST_P(PlanningCost, IsPaidOnce) {
  const Graph g = fusion_of(GetParam(), 60);
  const AutomaticPlan plan = planned(g);
  ASSERT_EQ(plan.planned.size(), plan.decisions.size());
  for (const PlannedSegment& p : plan.planned) {
    Graph again = extract(g, p.segment);
    apply_steps(again, p.segment.steps);
    EXPECT_TRUE(same_members(again, p.scheduled)) << p.segment.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PlanningCost, ::testing::Values(kGates, kNorms, kSums, kMoves, kWide));

}  // namespace
}  // namespace fusebox
