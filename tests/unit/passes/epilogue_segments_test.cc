// The automatic plan computes a product of matrices and what follows it by one call of ATen, and says why where it does not.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/automatic/plan_report.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "tests/support/automatic.h"

namespace fusebox {
namespace {

using testing::plan_of;
using testing::Planned;

const std::vector<BoundInput> kSizes = {{.shape = {64, 32}}, {.shape = {48, 32}}, {.shape = {48}}};

Planned layer(const std::string& behind) {
  return plan_of(
      "fusion @f {\n  %m, %n, %k = size\n  %x = input bf16[%m, %k]\n  %w = input bf16[%n, %k]\n"
      "  %b = input bf16[%n]\n  %y = linear %x, %w bias %b\n" +
          behind + "}",
      kSizes);
}

// Executor and ops of each segment.
std::vector<std::string> segments(const Segmentation& s) {
  std::vector<std::string> all;
  for (const Segment& segment : s.segments) {
    all.push_back(std::string(text(segment.executor)) + ":");
    for (const std::string& op : segment.ops) all.back() += " " + op;
  }
  return all;
}

// The segments that the plan's steps give without any scheduler.
std::vector<std::string> repeated(const Planned& p) {
  const auto& steps = p.compiled.automatic->steps;
  return segments(plan_steps(p.compiled.concretized, std::span(steps).subspan(leading_rewrites(steps))));
}

TEST(EpilogueSegments, OneCall) {
  const Planned p = layer("  %z = relu %y\n  output %z\n");
  const std::vector<std::string> expected = {"aten: y z"};
  EXPECT_EQ(segments(p.compiled.segmentation), expected);
  EXPECT_EQ(repeated(p), expected);
  ASSERT_EQ(p.compiled.automatic->decisions.size(), 1u);
  EXPECT_EQ(text(p.compiled.automatic->decisions[0].heuristics), "expr_eval epilogue \"bias relu\"");
}

TEST(EpilogueSegments, TheUnfusedPlanHasNone) {
  const Planned p = layer("  %z = relu %y\n  output %z\n");
  EXPECT_EQ(segments(plan_unfused(p.compiled.concretized)), (std::vector<std::string>{"aten: y", "kernel: z"}));
}

TEST(EpilogueSegments, BetweenKernels) {
  const Planned p = layer(R"(  %z = relu %y
  %f = cast %z as f32
  %s = sum %f over [1]
  output %s
)");
  EXPECT_EQ(segments(p.compiled.segmentation).at(0), "aten: y z");
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 2u);
}

TEST(EpilogueSegments, WhatOtherSegmentsReadStaysOutside) {
  const Planned p = layer("  %z = relu %y\n  %u = neg %y\n  output %z\n  output %u\n");
  EXPECT_EQ(segments(p.compiled.segmentation).at(0), "aten: y");
  EXPECT_EQ(p.why("epilogue"), "%y is read by %z and by %u");
  const Planned stored = layer("  %z = relu %y\n  output %z\n  output %y\n");
  EXPECT_EQ(segments(stored.compiled.segmentation).at(0), "aten: y");
  EXPECT_EQ(stored.why("epilogue"), "%y is stored too, for other readers");
}

// An output is a reader like others, also of a cheap op in the middle.
TEST(EpilogueSegments, ACastThatIsAnOutputToo) {
  const Planned p = layer("  %f = cast %y as f32\n  %r = relu %f\n  %z = cast %r as bf16\n  output %z\n  output %f\n");
  EXPECT_EQ(segments(p.compiled.segmentation).at(0), "aten: y");
}

TEST(EpilogueSegments, TwoProductsBehindOneAnother) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %n, %k, %o = size
  %x = input f16[%m, %k]
  %w = input f16[%k, %n]
  %v = input f16[%n, %o]
  %y = matmul %x, %w
  %z = relu %y
  %u = matmul %z, %v
  %s = mul %u, 0.5_f16
  output %s
})",
                            {{.shape = {8, 16}}, {.shape = {16, 24}}, {.shape = {24, 40}}});
  EXPECT_EQ(segments(p.compiled.segmentation), (std::vector<std::string>{"aten: y z", "aten: u s"}));
  EXPECT_EQ(repeated(p), segments(p.compiled.segmentation));
}

TEST(EpilogueSegments, GeluOfAnMlp) {
  const std::string program = testing::program_text("mlp");
  const Planned p = plan_of(program, kSizes);
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 1u);
  EXPECT_EQ(text(p.compiled.automatic->decisions[0].heuristics), "expr_eval epilogue \"bias gelu\"");
  // An exact tanh is no library's.
  std::string exact = program;
  exact.erase(exact.find(" fast"), 5);
  const Planned q = plan_of(exact, kSizes);
  EXPECT_EQ(segments(q.compiled.segmentation).at(0), "aten: y");
  EXPECT_EQ(q.why("epilogue"), "%t is exact, and libraries approximate tanh; `precision of [%t] fast` allows it");
}

TEST(EpilogueSegments, StandInTheReportOfThePlan) {
  const Planned p = layer("  %z = relu %y\n  %u = neg %y\n  output %z\n  output %u\n");
  const Compiled& c = p.compiled;
  const PlanReport r = report_plan(
      c.concretized, c.segmentation, c.automatic->decisions,
      {.sizes = rebind(p.fusion, bind_sizes(p.fusion, kSizes), c.concretized), .memory = c.automatic->memory});
  ASSERT_FALSE(r.parts.empty());
  EXPECT_EQ(r.parts[0].declined.back(), (Declined{"epilogue", "%y is read by %z and by %u"}));
}

}  // namespace
}  // namespace fusebox
