// The states that `compile` keeps beside the kernels.
#include "passes/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "passes/schedule/apply_steps.h"

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

// With `%n - 0` rewritten, the reshape of an axis of one element keeps what %e expands, and no output over that overwrites %t.
constexpr const char* kExpandedWhenRewritten = R"(fusion @f {
  %m = size
  %n = size
  %x = input f32[symbolic %n] contiguous
  %t = input f32[%m] contiguous
  %e = expand %x to [%m] : f32[symbolic %m]
  %a = input index
  %n_again = sub %n, 0 : index
  %r = reshape %e to [%n_again, %a] : f32[symbolic %n_again, symbolic %a]
  %s = sum %r over [0]
  %p = slice %s from [0] to [%m] by [1]
  %y = neg %p
  output %y alias %t
}
)";

TEST(Compile, PlansAProgramAsItIsWrittenWhereRewritesExpandAnOutput) {
  const Module m = parse_module(kExpandedWhenRewritten);
  const Graph& g = main_graph(m);
  const auto given = [](int64_t rows, int64_t size) {
    return std::vector<BoundInput>{
        {.shape = {size}}, {.shape = {rows}}, {.is_scalar = true, .bits = {static_cast<uint64_t>(rows), 0}}};
  };
  const auto options = [](const std::vector<BoundInput>& inputs) {
    return CompileOptions{.device = default_device(), .inputs = inputs};
  };
  const auto expanded = given(3, 1), single = given(1, 1);
  const Compiled as_written = compile(g, bind_sizes(g, expanded), options(expanded));
  EXPECT_EQ(leading_rewrites(as_written.automatic->steps), 0u);
  const Compiled rewritten = compile(g, bind_sizes(g, single), options(single));
  EXPECT_GT(leading_rewrites(rewritten.automatic->steps), 0u);

  // Each serves the sizes for which it is made again.
  EXPECT_TRUE(serves(as_written, g, bind_sizes(g, expanded), options(expanded)));
  EXPECT_TRUE(serves(rewritten, g, bind_sizes(g, single), options(single)));
  EXPECT_FALSE(serves(as_written, g, bind_sizes(g, single), options(single)));
  EXPECT_FALSE(serves(rewritten, g, bind_sizes(g, expanded), options(expanded)));
}

// A sum of so many tensors, as a tree.
Module sum_of_tensors(int count, const std::string& steps) {
  std::string text = "fusion @f {\n  %n = size\n";
  for (int i = 0; i < count; ++i) text += "  %x" + std::to_string(i) + " = input f32[%n] contiguous\n";
  int next = count;
  for (int i = 0; i + 1 < next; i += 2)
    text += "  %x" + std::to_string(next++) + " = add %x" + std::to_string(i) + ", %x" + std::to_string(i + 1) + "\n";
  return parse_module(text + "  output %x" + std::to_string(next - 1) + "\n}\n" + steps);
}

TEST(Compile, CutsWhatHasMoreTensorsThanAKernelHasParameters) {
  constexpr int kCount = 4200;
  const std::vector<BoundInput> inputs(kCount, {.shape = {8}});
  const Module m = sum_of_tensors(kCount, "");
  const Graph& g = main_graph(m);
  const Compiled c = compile(g, bind_sizes(g, inputs), {.device = default_device(), .inputs = inputs});
  EXPECT_GT(c.kernels.size(), 1u);

  const Module by_hand = sum_of_tensors(kCount, "steps @f {\n  inline_most of []\n}\n");
  try {
    compile(main_graph(by_hand), bind_sizes(main_graph(by_hand), inputs),
            {.steps = by_hand.step_lists[0].steps, .inputs = inputs});
    FAIL() << "it is compiled";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kUnsupportedSchedule) << e.what();
  }
}

}  // namespace
}  // namespace fusebox
