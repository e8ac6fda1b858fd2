// Lists of steps with rewrites: `apply_step` applies exactly the steps that `step_refusal` accepts, and throws its
// refusal for others.
#include "passes/schedule/apply_steps.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rewrite/rewrite.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

Graph program() {
  return parse_module(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n]
  %p = permute %x dims [1, 0]
  %q = permute %p dims [1, 0]
  %a = set %q
  %y = neg %a
  output %y
})")
      .graphs[0];
}

void expect_refused(const Graph& g, const Step& step, ErrorCode code, const std::string& place) {
  const auto refusal = step_refusal(g, step);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, code);
  EXPECT_EQ(refusal->place, place);
  Graph copy = g;
  expect_error(code, place, [&] { apply_step(copy, step); });
  EXPECT_TRUE(copy == g);
}

TEST(ApplySteps, EveryRewriteOfTheTableApplies) {
  for (const RewriteRow& row : rewrite_rows()) {
    EXPECT_EQ(find_rewrite(row.name), &row);
    EXPECT_FALSE(row.summary.empty());
    Graph g = program();
    EXPECT_FALSE(step_refusal(g, rewrite_step(row.name)));
    apply_step(g, rewrite_step(row.name));
  }
}

TEST(ApplySteps, RewritesThenASchedule) {
  Graph g = program();
  apply_steps(g, parse_steps("rewrite name \"identity_moves\"\nrewrite name \"identity_ops\" options \"limit=1\"\n"
                             "rewrite name \"dead_code\"\nsplit %y.i1 by 4 -> o, t\n"));
  EXPECT_EQ(g.level, Level::kScheduled);
  for (const char* name : {"p", "q", "a"}) EXPECT_FALSE(find_value(g, name)) << name;
  EXPECT_TRUE(find_domain(g, g[*find_value(g, "y")].tensor, "t"));
}

// Steps name what a rewrite makes, so its names may not depend on values that the text does not show.
TEST(ApplySteps, DeadValuesDoNotChangeTheNamesOfWhatARewriteMakes) {
  Graph g = parse_module(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n]
  %avg, %var, %count = welford %x over [1]
  output %var
}
)")
                .graphs[0];
  Graph with_dead = g;
  for (int i = 0; i < 5; ++i) constant(with_dead, Dtype::kInt64, from_int64(Dtype::kInt64, 100 + i));
  EXPECT_GT(with_dead.values.size(), g.values.size());
  const Step step = rewrite_step("two_pass_moments", "");
  apply_step(g, step);
  apply_step(with_dead, step);
  EXPECT_EQ(print(with_dead), print(g));
}

TEST(ApplySteps, WrongRewritesAreRefused) {
  const Graph g = program();
  expect_refused(g, rewrite_step("nonsense"), ErrorCode::kStepNotApplicable, "nonsense");
  expect_refused(g, Step{StepKind::kRewrite, {}, {}, {}}, ErrorCode::kStepNotApplicable, "name");
  for (const char* options : {"limit=few", "limit=-1", "limit=", "limit=1x", "limit=99999999999999999999"})
    expect_refused(g, rewrite_step("dead_code", options), ErrorCode::kStepNotApplicable, options);
  expect_refused(g, rewrite_step("dead_code", "depth=2"), ErrorCode::kStepNotApplicable, "depth");
  expect_refused(g, rewrite_step("dead_code", "limit=1,,"), ErrorCode::kStepNotApplicable, "");
  Step step = rewrite_step("dead_code");
  step.operands.push_back(StepOperand::of("x"));
  expect_refused(g, step, ErrorCode::kStepNotApplicable, "rewrite");
  step = rewrite_step("dead_code");
  step.attrs.set(AttrKey::kOptions, int64_t{1});
  expect_refused(g, step, ErrorCode::kStepNotApplicable, "options");
  step = rewrite_step("dead_code");
  step.attrs.set(AttrKey::kDepth, int64_t{1});
  expect_refused(g, step, ErrorCode::kStepNotApplicable, "depth");
  Graph scheduled = g;
  apply_steps(scheduled, parse_steps("split %y.i1 by 4 -> o, t\n"));
  expect_refused(scheduled, rewrite_step("dead_code"), ErrorCode::kStepNotApplicable, "dead_code");
}

TEST(ApplySteps, RewritesStandFirst) {
  EXPECT_EQ(leading_rewrites(parse_steps("rewrite name \"dead_code\"\nsplit %y.i0 by 4 -> o, t\n")), 1u);
  EXPECT_EQ(leading_rewrites({}), 0u);
  const auto late = parse_steps("assign of [%y] name \"s\"\nrewrite name \"dead_code\"\n");
  expect_error(ErrorCode::kStepNotApplicable, "dead_code", [&] { leading_rewrites(late); });
}

TEST(ApplySteps, PrecisionStandsBeforeRewrites) {
  EXPECT_EQ(
      leading_rewrites(parse_steps("precision of [] fast\nrewrite name \"dead_code\"\nsplit %y.i0 by 4 -> o, t\n")),
      2u);
  EXPECT_EQ(leading_rewrites(parse_steps("precision of [] fast\n")), 1u);
  for (const char* text :
       {"rewrite name \"dead_code\"\nprecision of [] fast\n", "split %y.i0 by 4 -> o, t\nprecision of [] exact\n"}) {
    const auto late = parse_steps(text);
    expect_error(ErrorCode::kStepNotApplicable, "", [&] { leading_rewrites(late); });
  }
}

TEST(ApplySteps, APrecisionStepChangesTheProgramThatIsJudged) {
  const Graph g =
      parse_graph("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %e = exp %x\n  %s = sin %e\n  output %s\n}");
  const auto fast = [&](const std::string& steps) {
    const Graph judged = with_precision(g, parse_steps(steps));
    std::string names;
    for (const Op& op : judged.ops)
      if (op.attrs.flag(AttrKey::kFast)) names += judged[op.results[0]].name;
    EXPECT_EQ(judged.level, Level::kMath);
    return names;
  };
  EXPECT_EQ(fast("split %s.i0 by 4 -> o, t\n"), "");
  EXPECT_EQ(fast("precision of [] fast\n"), "es");
  EXPECT_EQ(fast("precision of [] fast\nprecision of [%e] exact\n"), "s");
  EXPECT_EQ(fast("precision of [%e] fast\nrewrite name \"dead_code\"\n"), "e");
  EXPECT_EQ(fast("precision of [%x] fast\n"), "");  // refused, and left out
  expect_refused(g, parse_step("precision of [%x] fast"), ErrorCode::kStepNotApplicable, "%x");
  expect_refused(g, parse_step("precision of [%e]"), ErrorCode::kStepNotApplicable, "");
}

TEST(ApplySteps, AxesAreResolvedAsIfDeadOpsWereNotThere) {
  constexpr const char* kProgram = R"(fusion @f {
  %m, %n, %k = size
  %x = input f32[symbolic %m, symbolic %n]
  %i = input f32[%k]
  DEAD
  %y = neg %x
  output %y
}
)";
  std::vector<std::vector<Step>> plans;
  for (const char* dead : {"", "%d = expand %x to [%k, 3]"}) {
    std::string text = kProgram;
    text.replace(text.find("DEAD"), 4, dead);
    const Module m = parse_module(text);
    const Graph& fusion = main_graph(m);
    const std::vector<BoundInput> inputs = {{.shape = {1, 3}}, {.shape = {5}}};
    Graph g = fusion;
    plans.push_back(plan_resolution(fusion, bind_sizes(fusion, inputs), g));
    apply_steps(g, plans.back());
    EXPECT_FALSE(has_symbolic_axes(canonical_order(g))) << dead;
  }
  EXPECT_EQ(plans[0].size(), 2u);
  EXPECT_EQ(plans[0], plans[1]);
}

TEST(ApplySteps, BindingsFollowNames) {
  const Graph g = program();
  const std::vector<BoundInput> given = {{.shape = {3, 5}}};
  const Bindings b = bind_sizes(g, given);
  Graph other = g;
  apply_step(other, rewrite_step("identity_moves"));
  apply_step(other, rewrite_step("dead_code"));
  const Bindings moved = rebind(g, b, other);
  ASSERT_EQ(moved.size(), other.values.size());
  EXPECT_EQ(evaluate_integer(other, *find_value(other, "m"), moved), 3);
  EXPECT_EQ(evaluate_integer(other, *find_value(other, "n"), moved), 5);
  // With only rewrites, the unfused plan decides.
  const auto compiled = compile(g, b, {.steps = parse_steps("rewrite name \"dead_code\"\n")});
  EXPECT_EQ(compiled.segmentation.segments.size(), 4u);
}

}  // namespace
}  // namespace fusebox
