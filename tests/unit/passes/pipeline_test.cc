// The states that `compile` keeps beside the kernels.
#include "passes/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"

namespace fusebox {
namespace {

TEST(Compile, KeepsTheDigestsOfThePlansOfItsKernels) {
  const Module m = parse_module(R"(fusion @f {
  %n = size
  %x = input f32[%n]
  %y = exp %x
  %z = sum %y over [0]
  output %z
}
)");
  const Graph& g = main_graph(m);
  const std::vector<BoundInput> inputs = {{.shape = {5}}};
  const Compiled c = compile(g, bind_sizes(g, inputs), {.inputs = inputs, .digest_plans = true});
  std::vector<Digest> expected;
  for (const Graph& scheduled : c.scheduled) {
    const Graph ordered = canonical_order(scheduled);
    expected.push_back(digest(plan_kernel(ordered)));
  }
  EXPECT_EQ(expected.size(), 2u);
  EXPECT_EQ(c.plans, expected);
  EXPECT_TRUE(compile(g, bind_sizes(g, inputs), {.inputs = inputs}).plans.empty());
}

}  // namespace
}  // namespace fusebox
