// The law of planning costs for random programs: however often a schedule is refused and the fusion is cut again, what a
// stretch of its ops would read and store is worked out once.
#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>

#include "fuzz/generate/case.h"
#include "fuzz/generate/generate_inputs.h"
#include "ir/text/print.h"
#include "passes/automatic/plan_automatic.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox {
namespace {

TEST(PlanningRepeats, NoStretchIsWorkedOutTwice) {
  int planned = 0;
  int64_t most_cuts = 0, again = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const fuzz::Case c = generate_case(seed, fuzz::campaign_cases()).value;
    CompileOptions options;
    options.device = default_device();
    options.inputs = fuzz::bound_inputs(c.inputs());
    Bindings sizes;
    Graph concretized;
    MemoryClasses memory;
    try {
      sizes = fuzz::sizes_of(c.fusion(), c.inputs());
      const Compiled compiled = compile(c.fusion(), sizes, options);
      concretized = compiled.concretized;
      memory = compiled.automatic->memory;
    } catch (const Error& e) {
      ASSERT_NE(e.code, ErrorCode::kInternal) << e.what();
      continue;  // any other: the inputs do not fit the program
    }
    const AutomaticPlan plan =
        plan_automatic(concretized, {.sizes = rebind(c.fusion(), sizes, concretized), .memory = memory});
    const auto ops = static_cast<int64_t>(concretized[Graph::body()].ops.size());
    EXPECT_LE(plan.work.stretches, ops * (ops + 1) / 2) << "seed " << seed << "\n" << print(concretized);
    EXPECT_LE(plan.work.tried_cuts, plan.work.stretches + ops);
    ++planned;
    again += plan.work.tried_cuts > 1;
    most_cuts = std::max(most_cuts, plan.work.tried_cuts);
  }
  std::printf("  %d planned, %lld cut again, at most %lld times\n", planned, static_cast<long long>(again),
              static_cast<long long>(most_cuts));
  EXPECT_GT(planned, 200);
  EXPECT_GT(again, 0) << "no schedule was refused, so nothing is shown";
}

}  // namespace
}  // namespace fusebox
