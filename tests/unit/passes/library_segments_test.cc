// Ops that ATen alone computes: every plan gives them segments of their own, and no kernel takes them.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "passes/plan/plan_stages.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "tests/support/automatic.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;
using testing::plan_of;
using testing::Planned;

constexpr const char* kLayer = R"(fusion @f {
  %m, %n, %k = size
  %x = input f32[%m, %k]
  %w = input f32[%n, %k]
  %a = mul %x, 2.0_f32
  %y = linear %a, %w
  %z = exp %y
  output %z
})";

std::vector<SegmentExecutor> executors(const Segmentation& s) {
  std::vector<SegmentExecutor> result;
  for (const Segment& segment : s.segments) result.push_back(segment.executor);
  return result;
}

const std::vector<SegmentExecutor> kBetweenKernels = {SegmentExecutor::kKernel, SegmentExecutor::kAten,
                                                      SegmentExecutor::kKernel};

TEST(LibrarySegments, TheUnfusedPlanCallsAten) {
  const Segmentation s = plan_unfused(main_graph(parse_module(kLayer)));
  EXPECT_EQ(executors(s), kBetweenKernels);
  EXPECT_TRUE(s.segments[1].steps.empty());
}

TEST(LibrarySegments, TheAutomaticPlanNamesWhoTakesThem) {
  const Planned p = plan_of(kLayer, {{.shape = {64, 32}}, {.shape = {16, 32}}});
  EXPECT_EQ(executors(p.compiled.segmentation), kBetweenKernels);
  const auto& decisions = p.compiled.automatic->decisions;
  ASSERT_EQ(decisions.size(), 3u);
  EXPECT_EQ(decisions[1].heuristics.scheduler, "expr_eval");
  EXPECT_EQ(p.why("matmul"), "no kernel of %y, a linear, is generated yet");
  // A run with the plan's steps makes the same segments.
  EXPECT_EQ(executors(plan_steps(
                p.compiled.concretized,
                std::span(p.compiled.automatic->steps).subspan(leading_rewrites(p.compiled.automatic->steps)))),
            kBetweenKernels);
}

TEST(LibrarySegments, OneOpAloneIsASegmentToo) {
  const Planned p = plan_of("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %y = cumsum %x axis 0\n  output %y\n}",
                            {{.shape = {9}}});
  EXPECT_EQ(executors(p.compiled.segmentation), std::vector{SegmentExecutor::kAten});
  EXPECT_EQ(p.scheduler(), "expr_eval");
}

TEST(LibrarySegments, EmptyTensorsGoToAtenToo) {
  const Planned p = plan_of(kLayer, {{.shape = {0, 32}}, {.shape = {16, 32}}});
  EXPECT_EQ(executors(p.compiled.segmentation), kBetweenKernels);
}

// A cheap op that is computed again wherever it is read is stored for ATen.
TEST(LibrarySegments, NoOpIsCopiedIntoThem) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %k = size
  %x = input bf16[%m, %k]
  %f = cast %x as f32
  %s = cumsum %f axis 1
  %y = add %s, %f
  output %y
})",
                            {{.shape = {64, 32}}});
  for (const Segment& s : p.compiled.segmentation.segments)
    if (s.executor == SegmentExecutor::kAten) {
      EXPECT_EQ(s.ops, std::vector<std::string>{"s"});
    }
}

// Functions of complex numbers have the rows of those of real numbers, and no kernel.
TEST(LibrarySegments, FunctionsOfComplexNumbersAreTheirs) {
  constexpr const char* kText = R"(fusion @f {
  %m, %n = size
  %x = input c64[%m, %n]
  %a = mul %x, %x
  %y = exp %a
  %z = abs %y
  output %z
})";
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{64, 32}, {0, 32}, {1, 1}}) {
    const Planned p = plan_of(kText, {{.shape = shape}});
    EXPECT_EQ(executors(p.compiled.segmentation), kBetweenKernels);
    EXPECT_EQ(p.compiled.automatic->decisions[1].heuristics.scheduler, "expr_eval");
    EXPECT_NE(p.why("pointwise").find("ATen alone computes"), std::string::npos) << p.why("pointwise");
  }
  const Graph g = main_graph(parse_module(kText));
  EXPECT_EQ(executors(plan_unfused(g)), kBetweenKernels);
  expect_error(ErrorCode::kNotInKernel, "%y", [&] { plan_refusable(g); });
}

TEST(LibrarySegments, NoKernelTakesThem) {
  const Graph g = main_graph(parse_module(kLayer));
  expect_error(ErrorCode::kNotInKernel, "%y", [&] { plan_refusable(g); });
  const std::vector<Step> one = parse_steps("assign of [%a, %y, %z] name \"all\" by kernel");
  expect_error(ErrorCode::kNotInKernel, "%y", [&] {
    compile(g, bind_sizes(g, std::vector<BoundInput>{{.shape = {4, 3}}, {.shape = {5, 3}}}), {.steps = one});
  });
}

}  // namespace
}  // namespace fusebox
