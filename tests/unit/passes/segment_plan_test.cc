#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

// y = x, then y = y + y `length` times; the last one overwrites x.
Graph doubled(int length) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {size(g, "n")});
  ValueId y = unary(g, OpKind::kNeg, x);
  for (int i = 0; i < length; ++i) y = add(g, y, y);
  output(g, unary(g, OpKind::kSet, y, "y"), x);
  return g;
}

// 2^200 paths lead from the last op to the first.
TEST(SegmentPlan, ChainsOfSumsArePlannedOpByOp) {
  for (const int length : {1, 200}) {
    const Segmentation one = plan_single(doubled(length), {});
    ASSERT_EQ(one.segments.size(), 1u);
    EXPECT_EQ(one.segments[0].outputs[0].alias, "x") << length;
    // The first kernel reads x, and the last one runs after it.
    const Segmentation many = plan_unfused(doubled(length));
    ASSERT_EQ(many.segments.size(), static_cast<size_t>(length) + 2);
    EXPECT_EQ(many.segments.back().outputs[0].alias, "") << length;
  }
}

std::string alias_of(const std::string& ops) {
  const Module m = parse_module("fusion @f {\n  %n = size\n  %x = input f32[%n]\n" + ops + "}\n");
  const Segmentation s = plan_single(main_graph(m), {});
  for (const Crossing& c : s.segments[0].outputs)
    if (c.value == "y") return c.alias;
  return "none";
}

// An op that reads the input and the output over it, directly or indirectly, needs the input unchanged.
TEST(SegmentPlan, AnInputIsNotOverwrittenForItsLaterReaders) {
  EXPECT_EQ(alias_of("  %y = neg %x\n  output %y alias %x\n"), "x");
  EXPECT_EQ(alias_of("  %y = neg %x\n  %z = add %y, %x\n  output %y alias %x\n  output %z\n"), "");
  EXPECT_EQ(alias_of("  %y = neg %x\n  %a = exp %y\n  %b = exp %a\n  %z = add %b, %x\n  output %y alias %x\n"
                     "  output %z\n"),
            "");
  EXPECT_EQ(alias_of("  %z = exp %x\n  %y = add %z, %x\n  output %y alias %x\n  output %z\n"), "x");
}

// The steps say whether an output has memory of its own, by the name that it has at the time.
TEST(SegmentPlan, AnOutputKeptInGlobalMemoryHasItsOwn) {
  const auto alias_after = [](const std::string& steps) {
    const Module m = parse_module(
        "fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %y = neg %x\n  %z = exp %y\n  output %y alias %x\n"
        "  output %z\n}\nsteps @f {\n  inline_most of [%y]\n" +
        steps + "}\n");
    return plan_steps(main_graph(m), m.step_lists[0].steps).segments[0].outputs[0].alias;
  };
  EXPECT_EQ(alias_after(""), "x");
  EXPECT_EQ(alias_after("  set_memory_type %y in global\n"), "");
  EXPECT_EQ(alias_after("  set_memory_type %y in global\n  set_memory_type %y in unset\n"), "x");
  EXPECT_EQ(alias_after("  set_memory_type %z in global\n"), "x");
  EXPECT_EQ(alias_after("  cache_before %y -> c\n  set_memory_type %c in global\n"), "x");
  EXPECT_EQ(alias_after("  cache_before %y -> c\n  set_memory_type %y in global\n"), "");
  EXPECT_EQ(alias_after("  cache_fork %y -> c\n  set_memory_type %y in global\n"), "x");
  EXPECT_EQ(alias_after("  set_memory_type %y in global\n  cache_fork %y -> c\n"), "x");
  EXPECT_EQ(alias_after("  cache_fork %y -> c\n  set_memory_type %c in global\n"), "");
}

// The refusal of a schedule: its place and its message.
std::pair<std::string, std::string> refusal_of(const std::string& steps) {
  const Module m = parse_module(
      "fusion @f {\n  %k, %m, %n = size\n  %w = input f32[%k]\n  %x = input f32[%m]\n  %y = input f32[%n]\n"
      "  %a = neg %x\n  %b = exp %y\n  output %a\n  output %b\n}\nsteps @f {\n" +
      steps + "}\n");
  try {
    plan_steps(main_graph(m), m.step_lists[0].steps);
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kStepReferent) << e.what();
    return {e.place, e.what()};
  }
  return {};
}

// Nothing reads %w, so no kernel has its size.
TEST(SegmentPlan, AFactThatNoKernelCanCheckIsRefusedByName) {
  const std::string apart = "  assign of [%a] name \"p\" by kernel\n  assign of [%b] name \"q\" by kernel\n";
  for (const std::string& kernels : {std::string(), apart}) {
    EXPECT_EQ(refusal_of(kernels + "  assume [%m] multiple_of 4\n").second, "");
    EXPECT_EQ(refusal_of(kernels + "  assume [%n] equal %n\n").second, "");
    const auto unknown = refusal_of(kernels + "  assume [%m, %l] at_most 9\n");
    EXPECT_EQ(unknown.first, "%l");
    EXPECT_NE(unknown.second.find("no value has this name"), std::string::npos) << unknown.second;
  }
  EXPECT_EQ(refusal_of("  assume [%m] below %n\n").second, "");
  const auto divided = refusal_of(apart + "  assume [%m] below %n\n");
  EXPECT_EQ(divided.first, "%m");
  EXPECT_NE(divided.second.find("different kernels"), std::string::npos) << divided.second;
  for (const std::string& kernels : {std::string(), apart}) {
    const auto outside = refusal_of(kernels + "  assume [%k] at_most 4\n");
    EXPECT_EQ(outside.first, "%k");
    EXPECT_NE(outside.second.find("no kernel computes with this size"), std::string::npos) << outside.second;
  }
}

// Two segments read %x, so a step that names only %x does not say for which of them it is.
TEST(SegmentPlan, AStepGoesToTheSegmentThatItNames) {
  const Module m = parse_module(R"(fusion @f {
  %n = size
  %x = input f32[%n]
  %y = neg %x
  %z = exp %x
  output %y
  output %z
}
steps @f {
  assign of [%y] name "a" by kernel
  assign of [%z] name "b" by kernel
  cache_after %x -> xc
  cache_after %x segment "b" -> xd
  inline_most of [] segment "b"
  assume [%n] at_most 7 segment "b"
})");
  const Segmentation s = plan_steps(main_graph(m), find_steps(m, "f")->steps);
  ASSERT_EQ(s.segments.size(), 2u);
  const auto kinds = [](const Segment& segment) {
    std::vector<StepKind> result;
    for (const Step& step : segment.steps) {
      result.push_back(step.kind);
      EXPECT_FALSE(step.attrs.has(AttrKey::kSegment));
    }
    return result;
  };
  EXPECT_EQ(kinds(s.segments[0]), (std::vector<StepKind>{StepKind::kCacheAfter}));
  EXPECT_EQ(kinds(s.segments[1]),
            (std::vector<StepKind>{StepKind::kAssume, StepKind::kCacheAfter, StepKind::kInlineMost}));
  EXPECT_EQ(s.segments[1].steps[1].results[0], "xd");

  std::vector<Step> steps = find_steps(m, "f")->steps;
  steps[3].attrs.set(AttrKey::kSegment, std::string("c"));
  try {
    plan_steps(main_graph(m), steps);
    FAIL() << "a segment that no step assigns was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kStepReferent);
    EXPECT_EQ(e.place, "@c");
  }
}

}  // namespace
}  // namespace fusebox
