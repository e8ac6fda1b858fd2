// Laws of the kernel plan, on the schedules that the fuzzer draws and on the corpus: a plan's text reads back as a plan
// of the same text, from which the same kernel and launch are emitted; planning does not depend on plans made before;
// what has a plan is what is legal.
#include "passes/plan/kernel_plan.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "fuzz/generate/case.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "replay/data/input.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

std::string emitted(const KernelPlan& plan) {
  const Lowered lowered = emit_kernel(plan, {.index_bits = 32, .explain = true});
  std::string out = print(lowered.kernel) + print(lowered.launch);
  for (const CheckNote& n : lowered.notes)
    out += n.value + " " + n.domain + " " + n.predicate + (n.checked ? " checked" : "") +
           (n.settled ? " settled\n" : "\n");
  return out;
}

// The plans that it looked at.
size_t expect_round_trips(const Compiled& c) {
  size_t plans = 0;
  for (size_t i = 0; i < c.scheduled.size(); ++i) {
    if (c.segmentation.segments[i].executor != SegmentExecutor::kKernel) continue;
    const Graph g = canonical_order(c.scheduled[i]);
    const KernelPlan plan = plan_kernel(g);
    EXPECT_EQ(check_plan(plan).value_or(""), "") << print(g);
    const std::string text = print_plan(plan);
    const KernelPlan read = parse_plan(g, text);
    EXPECT_EQ(print_plan(read), text) << print(g);
    EXPECT_EQ(emitted(read), emitted(plan)) << print(g) << text;
    // Emission adds forms to the plan's algebras, and changes none.
    EXPECT_EQ(print_plan(plan), text) << print(g);
    EXPECT_EQ(print_plan(KernelPlan(plan)), text);
    ++plans;
  }
  return plans;
}

TEST(KernelPlan, TextReadsBackOnDrawnSchedules) {
  const uint64_t from = testing::setting("FUSEBOX_FIRST_SEED", 1), seeds = testing::setting("FUSEBOX_PLANS", 400);
  size_t plans = 0;
  for (uint64_t seed = from; seed < from + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    fuzz::DrawnCase drawn = fuzz::generate_case(seed, {});
    if (drawn.refusal || drawn.surprise) continue;
    const Graph& fusion = drawn.value.fusion();
    std::vector<Argument> arguments;
    for (const InputSpec& spec : drawn.value.inputs().specs) arguments.push_back(make_argument(spec, 1));
    const Bindings sizes = bind_sizes(fusion, bound_inputs(arguments));
    for (const bool unfused : {false, true}) {
      CompileOptions options;
      if (!unfused && drawn.value.steps()) options.steps = *drawn.value.steps();
      plans += expect_round_trips(compile(fusion, sizes, options));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(plans, seeds) << "few of the drawn schedules have a kernel";
}

// The error of a graph that may not be legal, or nothing.
std::string refusal(const Graph& g) {
  try {
    lower(g);
    return "";
  } catch (const Error& e) {
    return code_text(e.code) + " " + e.place + " " + e.what();
  }
}

// `legal` runs the stages that may refuse a schedule, and lowering runs them all. Drawn schedules that lack one of their
// steps are often refused.
TEST(KernelPlan, LoweringRefusesWhatIsNotLegalAndNothingElse) {
  size_t refused = 0, accepted = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const fuzz::DrawnCase drawn = fuzz::generate_case(seed, {});
    if (drawn.refusal || drawn.surprise || !drawn.value.steps()) continue;
    const Graph& fusion = drawn.value.fusion();
    std::vector<Argument> arguments;
    for (const InputSpec& spec : drawn.value.inputs().specs) arguments.push_back(make_argument(spec, 1));
    const Bindings sizes = bind_sizes(fusion, bound_inputs(arguments));
    for (size_t left_out = 0; left_out < std::min<size_t>(drawn.value.steps()->size(), 8); ++left_out) {
      std::vector<Step> steps = *drawn.value.steps();
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(left_out));
      const CompileAttempt attempt = try_compile(fusion, sizes, {.steps = steps});
      for (size_t i = 0; i < attempt.made.scheduled.size(); ++i) {
        if (attempt.made.segmentation.segments[i].executor != SegmentExecutor::kKernel) continue;
        const Graph g = canonical_order(attempt.made.scheduled[i]);
        const auto error = legal(g);
        const std::string expected = error ? code_text(error->code) + " " + error->place + " " + error->what() : "";
        ASSERT_EQ(refusal(g), expected) << print(g);
        ++(error ? refused : accepted);
      }
    }
  }
  EXPECT_GT(refused, 20u);
  EXPECT_GT(accepted, 200u);
}

TEST(KernelPlan, TextReadsBackOnTheCorpus) {
  size_t plans = 0;
  for (const auto& entry : std::filesystem::directory_iterator("corpus/programs")) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const Module m = parse_module(text.str());
    const Graph& g = main_graph(m);
    std::vector<Argument> arguments;
    for (const InputSpec& spec : find_input_specs(m, g.name, "host")->specs)
      arguments.push_back(make_argument(spec, 1));
    CompileOptions options;
    if (const StepList* list = find_steps(m, g.name)) options.steps = list->steps;
    plans += expect_round_trips(compile(g, bind_sizes(g, bound_inputs(arguments)), options));
  }
  EXPECT_GT(plans, 15u);
}

// Cuts and changes in a plan's text give the plan of another text, or kSyntax; never anything else.
TEST(KernelPlan, DamagedTextIsRefused) {
  const Module m = parse_module(R"(fusion @k {
  %n = size
  %x = input f32[%n] contiguous
  %y = exp %x : f32[%n]
  output %y
}

steps @k {
  split %y.i0 by 128 -> o, t
  parallelize %y.o on grid.x
  parallelize %y.t on block.x
}
)");
  Graph g = main_graph(m);
  apply(g, find_steps(m, "k")->steps);
  const std::string text = print_plan(plan_kernel(g));
  // Lines are counted from 1, the head of the plan included.
  const auto place = [&](std::string_view line) {
    std::string damaged = text;
    damaged.insert(damaged.find(line), "nothing ");
    try {
      parse_plan(g, damaged);
    } catch (const Error& e) {
      return e.place;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(place("plan @"), "line 1");
  EXPECT_EQ(place("threads"), "line 2");
  EXPECT_EQ(place("buffer"), "line 3");
  size_t refused = 0;
  for (size_t i = 0; i < text.size(); ++i)
    for (const std::string_view with : {"", "%", "{", "9", "-", "z"}) {
      std::string damaged = text;
      damaged.replace(i, 1, with);
      try {
        emitted(parse_plan(g, damaged));
      } catch (const Error& e) {
        EXPECT_EQ(e.code, ErrorCode::kSyntax) << e.what() << "\n" << damaged;
        EXPECT_TRUE(e.place.starts_with("line ")) << e.place;
        ++refused;
      }
    }
  EXPECT_GT(refused, text.size());
}

}  // namespace
}  // namespace fusebox
