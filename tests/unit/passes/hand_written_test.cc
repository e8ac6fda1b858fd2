// How the automatic plans of reductions compare with the hand-written schedules of the corpus.
#include <gtest/gtest.h>
#include <set>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "passes/plan/plan_stages.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

// How a schedule uses memory and threads: the widths of its vector copies and the number of its barriers.
struct Outline {
  std::multiset<int64_t> widths;
  size_t barriers = 0, kernels = 0, exchanges = 0;
};

Outline outline_of(const Compiled& c) {
  Outline result;
  for (size_t i = 0; i < c.scheduled.size(); ++i) {
    if (c.segmentation.segments[i].executor != SegmentExecutor::kKernel) continue;
    ++result.kernels;
    const Graph g = canonical_order(c.scheduled[i]);
    const KernelPlan plan = plan_kernel(g);
    for (const StatementPlan& s : plan.statements)
      if (s.vector) result.widths.insert(s.vector->width);
    result.barriers += plan.sync_points.size();
    result.exchanges += plan.exchanges.size();
  }
  return result;
}

// The inputs of a program that are meant for a GPU.
std::vector<BoundInput> gpu_inputs(const Module& m) {
  std::vector<BoundInput> inputs;
  for (const InputSpec& s : find_input_specs(m, main_graph(m).name, "gpu")->specs)
    inputs.push_back(s.is_scalar ? BoundInput{.is_scalar = true, .bits = s.value}
                                 : BoundInput{.shape = s.shape, .align = 256});
  return inputs;
}

class HandWritten : public ::testing::TestWithParam<const char*> {};

TEST_P(HandWritten, IsNoBetterInOutline) {
  const Module m = parse_module(testing::file_text("corpus/schedules/" + std::string(GetParam()) + ".fir"));
  const Graph& g = main_graph(m);
  const std::vector<BoundInput> inputs = gpu_inputs(m);
  const Bindings bindings = bind_sizes(g, inputs);
  const Compiled automatic = compile(g, bindings, {.device = default_device(), .inputs = inputs});
  const Compiled hand = compile(g, bindings, {.steps = find_steps(m, g.name)->steps, .inputs = inputs});
  ASSERT_TRUE(automatic.automatic);
  std::string why;
  for (const Decision& d : automatic.automatic->decisions)
    for (const Declined& no : d.declined) why += no.scheduler + ": " + no.why + "\n";
  SCOPED_TRACE(why + print_steps(automatic.automatic->steps));
  const Outline ours = outline_of(automatic), theirs = outline_of(hand);
  EXPECT_EQ(ours.kernels, theirs.kernels);
  EXPECT_EQ(ours.widths, theirs.widths);
  EXPECT_EQ(ours.exchanges, theirs.exchanges);
  EXPECT_LE(ours.barriers, theirs.barriers);
}

// The kernels of the automatic plan, for the inputs of a program that are meant for a GPU.
size_t kernels_of(const Module& m) {
  const Graph& g = main_graph(m);
  const std::vector<BoundInput> inputs = gpu_inputs(m);
  return outline_of(compile(g, bind_sizes(g, inputs), {.device = default_device(), .inputs = inputs})).kernels;
}

TEST(Kernels, AreAsFewAsThePlanAllows) {
  // The average of all rows is a kernel of its own: its blocks would have to wait for one another.
  EXPECT_EQ(kernels_of(parse_module(testing::file_text("corpus/schedules/cross_entropy.fir"))), 2u);
  EXPECT_EQ(kernels_of(parse_module(testing::file_text("corpus/schedules/layer_norm_backward.fir"))), 1u);
  // The label's logit is picked from a cast of the input.
  std::string text = testing::file_text("corpus/schedules/cross_entropy_two_pass.fir");
  const size_t at = text.find("take_along_axis %x,");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 19, "take_along_axis %xf,");
  const size_t steps = text.find("steps @");
  text.erase(steps, text.find("inputs @") - steps);
  EXPECT_EQ(kernels_of(parse_module(text)), 2u);
  // Or from the logarithm of a softmax.
  EXPECT_EQ(kernels_of(parse_module(testing::program_text("loss_of_log_softmax"))), 1u);
}

INSTANTIATE_TEST_SUITE_P(Schedules, HandWritten,
                         ::testing::Values("row_sum", "column_sum", "total_sum", "softmax", "softmax_odd", "layer_norm",
                                           "layer_norm_odd", "layer_norm_welford", "rms_norm", "rms_norm_odd",
                                           "welford_batch_norm"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace fusebox
