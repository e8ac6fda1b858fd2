// Segments by view: what lies in its operand's memory takes no kernel, and reads there what a kernel would have copied.
#include <gtest/gtest.h>

#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "passes/rewrite/rewrite.h"
#include "passes/segment/segment.h"
#include "passes/segment/view.h"
#include "tests/support/automatic.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_compiled.h"

namespace fusebox {
namespace {

using testing::expect_error;
using testing::plan_of;
using testing::Planned;

std::string text(const std::vector<Contiguity>& flags) {
  std::string result;
  for (Contiguity c : flags) result += c == Contiguity::kTrue ? "t" : c == Contiguity::kFalse ? "f" : "-";
  return result;
}

// How the last tensor op's result lies in memory: its order, contiguity and strides, or why it does not.
std::string view_of_last(const std::string& body) {
  const Graph g = main_graph(parse_module("fusion @f {\n" + body + "\n  output %y\n}"));
  const OpId op = g[*find_value(g, "y")].def;
  const auto found = find_view(g, op);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  const View& view = std::get<View>(found);
  std::string result;
  for (int64_t axis : view.in_memory.order) result += std::to_string(axis);
  result += " " + text(view.in_memory.contiguity);
  for (const auto& stride : view.strides) {
    result += stride ? " " + std::to_string(stride->axis) : " -";
    for (DomainId d : stride ? stride->times : std::vector<DomainId>()) result += "*" + g[d].name;
  }
  return result + (view.shifts.empty() ? "" : " shifted by " + std::to_string(view.shifts.size()));
}

TEST(Views, OfReshapes) {
  // A split axis has the stride of the operand's, times the extents of its parts that lie behind.
  EXPECT_EQ(view_of_last("%m = size\n%x = input f32[%m, 32]\n%y = reshape %x to [%m, 4, 8]"), "012 ttt 0 1*i2 1");
  // It may have any stride.
  EXPECT_EQ(view_of_last("%n = size\n%x = input f32[12, %n] contiguity [false, true]\n%y = reshape %x to [3, 4, %n]"),
            "012 tft 0*i1 0 1");
  // Merged axes lie behind one another without a gap.
  EXPECT_EQ(view_of_last("%m, %n = size\n%x = input f32[%m, 8, %n]\n%a = mul %m, 8\n%y = reshape %x to [%a, %n]"),
            "01 tt 1 2");
  EXPECT_EQ(view_of_last("%m, %n = size\n%x = input f32[%m, 8, %n] contiguity [false, true, true]\n%a = mul %m, 8\n"
                         "%y = reshape %x to [%a, %n]"),
            "it merges axes that do not lie behind one another without a gap");
  EXPECT_EQ(view_of_last("%m, %n = size\n%x = input f32[a iter %m, b iter 8, c iter %n] { allocation [b, a, c] }\n"
                         "%a = mul %m, 8\n%y = reshape %x to [%a, %n]"),
            "it merges axes that do not lie behind one another without a gap");
  // In another order of memory, the other axes lie behind one another.
  EXPECT_EQ(view_of_last("%m, %n = size\n%x = input f32[a iter %m, b iter 8, c iter %n] { allocation [b, c, a] }\n"
                         "%a = mul 8, %n\n%y = reshape %x to [%m, %a]"),
            "10 tt 0 2");
  // An axis of one element takes no memory.
  EXPECT_EQ(view_of_last("%m, %n = size\n%x = input f32[%m, %n]\n%y = reshape %x to [%m, 1, %n]"), "012 t-t 0 - 1");
}

// An axis of one element that a reshape drops may have had a gap behind it, which the axis outside of it steps over.
TEST(Views, OfReshapesThatDropAxes) {
  const Graph g =
      main_graph(parse_module("fusion @f {\n  %x = input f32[2, 3]\n  %s = slice %x from [0, 0] to [1, 3] by [1, 1]\n"
                              "  %y = reshape %s to [3]\n  output %y\n}"));
  const OpId op = g[*find_value(g, "y")].def;
  const auto contiguity = [&](const MemoryOrder& in) {
    return text(std::get<View>(find_view(g, op, in)).in_memory.contiguity);
  };
  EXPECT_EQ(contiguity({{1, 0}, {Contiguity::kTrue, Contiguity::kFalse}}), "f");
  EXPECT_EQ(contiguity({{1, 0}, {Contiguity::kTrue, Contiguity::kTrue}}), "t");
  EXPECT_EQ(contiguity({{0, 1}, {Contiguity::kFalse, Contiguity::kTrue}}), "t");
}

TEST(Views, OfSlices) {
  // The axes outside of it step over what is left out.
  EXPECT_EQ(view_of_last("%m, %n, %k = size\n%x = input f32[%m, 8, %n]\n"
                         "%y = slice %x from [0, 2, 0] to [%m, 5, %n] by [1, 1, 1]"),
            "012 ftt 0 1 2 shifted by 1");
  EXPECT_EQ(view_of_last("%m, %n = size\n%x = input f32[%m, 8, %n]\n"
                         "%y = slice %x from [0, 2, 0] to [%m, 3, %n] by [1, 1, 1]"),
            "012 ftt 0 1 2 shifted by 1");
  EXPECT_EQ(view_of_last("%m, %n, %a, %b = size\n%x = input f32[%m, %n]\n%s = input f32[%a, %b]\n"
                         "%y = slice %x from [%a, %b] to [%m, %n] by [1, 1]"),
            "01 ft 0 1 shifted by 2");
}

TEST(Views, OfOtherOps) {
  EXPECT_EQ(view_of_last("%m, %n, %a, %b = size\n%x = input f32[%m, %n]\n%s = input f32[%a, %b]\n"
                         "%y = reshape %x to [%a, %b]"),
            "its axes are not resolved");
  EXPECT_EQ(view_of_last("%n = size\n%x = input f32[%n]\n%y = neg %x"), "only a reshape or a slice is a view");
  EXPECT_EQ(view_of_last("%n = size\n%y = full 1.0_f32 of [%n]"), "it reads no tensor");
}

struct Refused {
  const char *program, *steps, *place;
};

// %x is read and %i overwritten in each of them.
const Refused kRefused[] = {
    {"%x = input f32[4, 6]\n%r = reshape %x to [4, 2, 3]\n%s = slice %x from [0, 0] to [4, 2] by [1, 1]\n"
     "%y = exp %r\n%z = exp %s\noutput %y\noutput %z",
     "assign of [%r, %s] name \"v\" by view\nassign of [%y, %z] name \"k\" by kernel", "segment v"},
    {"%x = input f32[4, 6]\n%r = neg %x\n%y = exp %r\noutput %y",
     "assign of [%r] name \"v\" by view\nassign of [%y] name \"k\" by kernel", "segment v"},
    {"%x = input f32[4, 6]\n%r = reshape %x to [24]\n%n = neg %x\n%y = exp %r\noutput %n alias %x\noutput %y",
     "assign of [%r] name \"v\" by view\nassign of [%n, %y] name \"k\" by kernel", "segment v"},
    {"%x = input f32[4, 6]\n%e = exp %x\n%r = reshape %e to [24]\n%y = exp %r\noutput %e alias %x\noutput %y",
     "assign of [%e] name \"e\" by kernel\nassign of [%r] name \"v\" by view\nassign of [%y] name \"k\" by kernel",
     "segment v"},
    {"%x = input f32[4, 6]\n%i = input f32[4, 6]\n%r = reshape %x to [24]\n%y = exp %r\n%z = reshape %y to [4, 6]\n"
     "output %z alias %x\noutput %z alias %i",
     "assign of [%r] name \"v\" by view\nassign of [%y, %z] name \"k\" by kernel", "segment v"},
    // The caller would find an output in an input's memory, or two in one place.
    {"%x = input f32[4, 6]\n%r = reshape %x to [24]\noutput %r", "assign of [%r] name \"v\" by view", "segment v"},
    {"%x = input f32[4, 6]\n%e = exp %x\n%r = reshape %e to [24]\noutput %e\noutput %r",
     "assign of [%e] name \"k\" by kernel\nassign of [%r] name \"v\" by view", "segment v"},
    {"%x = input f32[4, 6]\n%e = exp %x\n%r = reshape %e to [24]\n%s = reshape %e to [2, 12]\noutput %s\noutput %r",
     "assign of [%e] name \"k\" by kernel\nassign of [%r] name \"v\" by view\nassign of [%s] name \"w\" by view",
     "segment v"},
    {"%x = input f32[4, 6]\n%e = exp %x\n%r = slice %e from [0, 0] to [4, 3] by [1, 1]\noutput %r",
     "assign of [%e] name \"k\" by kernel\nassign of [%r] name \"v\" by view", "segment v"},
};

TEST(Views, AreRefused) {
  for (const Refused& r : kRefused) {
    SCOPED_TRACE(r.program);
    const Graph g = main_graph(parse_module("fusion @f {\n" + std::string(r.program) + "\n}"));
    const std::vector<Step> steps = parse_steps(r.steps);
    expect_error(ErrorCode::kStepNotApplicable, r.place, [&] { plan_assigned(g, steps); });
  }
}

// A schedule may store what a view would merge in another order of axes.
TEST(Views, OfAnotherOrderAreRefused) {
  const Graph g =
      main_graph(parse_module("fusion @f {\n  %m, %n = size\n  %a = mul %m, %n\n  %x = input f32[%m, %n]\n"
                              "  %e = exp %x\n  %r = reshape %e to [%a]\n  %y = exp %r\n  output %y\n}"));
  const std::vector<Step> steps = parse_steps(
      "assign of [%e] name \"k\" by kernel\nassign of [%r] name \"v\" by view\nassign of [%y] name \"l\" by kernel\n"
      "set_allocation %e to [%e.i1, %e.i0]");
  const std::vector<BoundInput> inputs = {{.shape = {4, 6}}};
  expect_error(ErrorCode::kIllegalAllocation, "%r",
               [&] { compile(g, bind_sizes(g, inputs), {.steps = steps, .inputs = inputs}); });
}

// A view that is returned over an input is copied there: its operand is made in memory of its own.
TEST(Views, AreCopiedOverInputs) {
  const Graph g =
      main_graph(parse_module("fusion @f {\n  %x = input f32[4, 6]\n  %i = input f32[24] contiguity [false]\n"
                              "  %e = neg %x\n  %r = reshape %e to [24]\n  output %r alias %i\n}"));
  const std::vector<Step> steps = parse_steps("assign of [%e] name \"k\" by kernel\nassign of [%r] name \"v\" by view");
  const std::vector<Argument> inputs = {Argument::of(allocate_tensor(Dtype::kFloat, {4, 6})),
                                        Argument::of(allocate_tensor(Dtype::kFloat, {24}, {3}))};
  for (int64_t i = 0; i < 24; ++i)
    store_element(inputs[0].tensor, i, from_double(Dtype::kFloat, static_cast<double>(i)));
  const auto given = bound_inputs(inputs);
  const Compiled c = compile(g, bind_sizes(g, given), {.steps = steps, .inputs = given});
  const auto outputs = testing::run_compiled(c, inputs);
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(load_element(outputs.at(0).value.tensor, 3 * i), from_double(Dtype::kFloat, -static_cast<double>(i)));
}

std::vector<SegmentExecutor> executors(const Segmentation& s) {
  std::vector<SegmentExecutor> result;
  for (const Segment& segment : s.segments) result.push_back(segment.executor);
  return result;
}

// The rows of an input in groups of 8: one kernel between two views.
TEST(Views, TheAutomaticPlanHasThem) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %n = size
  %b = floor_div %n, 8
  %x = input f32[%m, %n]
  %r = reshape %x to [%m, %b, 8]
  %s = max %r over [2]
  %sb = broadcast %s mask [0, 0, 1]
  %d = sub %r, %sb
  %y = reshape %d to [%m, %n]
  output %y
})",
                            {{.shape = {64, 32}}});
  EXPECT_EQ(executors(p.compiled.segmentation),
            (std::vector{SegmentExecutor::kView, SegmentExecutor::kKernel, SegmentExecutor::kView}));
}

// A program without reductions is one kernel, with no view.
TEST(Views, AreNotNeededWhereOneKernelTakesAll) {
  const Planned p = plan_of(
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %a = mul %m, %n\n"
      "  %r = reshape %x to [%a]\n  %y = exp %r\n  output %y\n}",
      {{.shape = {64, 32}}});
  EXPECT_EQ(executors(p.compiled.segmentation), std::vector{SegmentExecutor::kKernel});
}

// The rows of the first slice begin at multiples of 4 bytes alone, and those of the second one at multiples of 16.
TEST(Views, AccessesAreAsWideAsTheirMemoryAllows) {
  for (const int64_t from : {1, 4}) {
    const Planned p = plan_of("fusion @f {\n  %m = size\n  %x = input f32[%m, 100]\n  %s = slice %x from [0, " +
                                  std::to_string(from) + "] to [%m, " + std::to_string(from + 96) +
                                  "] by [1, 1]\n  %t = max %s over [1]\n  %u = broadcast %t mask [0, 1]\n"
                                  "  %y = sub %s, %u\n  output %y\n}",
                              {{.shape = {64, 100}}});
    EXPECT_EQ(p.vectors()[16], from == 4 ? 2 : 1) << from;  // the output has its own memory
    EXPECT_EQ(executors(p.compiled.segmentation), (std::vector{SegmentExecutor::kView, SegmentExecutor::kKernel}));
  }
}

constexpr const char* kGroupNorm = R"(fusion @f {
  %n, %c, %h = size
  %g = floor_div %c, 4
  %x = input f32[%n, %c, %h]
  %w = input f32[%c]
  %e = exp %x
  %r = reshape %e to [%n, 4, %g, %h]
  %s = sum %r over [2, 3]
  %sb = broadcast %s mask [0, 0, 1, 1]
  %d = sub %r, %sb
  %b = reshape %d to [%n, %c, %h]
  %wb = broadcast %w mask [1, 0, 1]
  %y = mul %b, %wb
  output %y
})";

// With the finest axes that reshapes make, an op in front of them and weights behind them are in the kernel too.
TEST(Views, AreMadeOfFinestAxes) {
  const Planned p = plan_of(kGroupNorm, {{.shape = {64, 32, 16}}, {.shape = {32}}});
  EXPECT_EQ(executors(p.compiled.segmentation), (std::vector{SegmentExecutor::kView, SegmentExecutor::kView,
                                                             SegmentExecutor::kKernel, SegmentExecutor::kView}));
  EXPECT_EQ(p.compiled.automatic->steps.at(0), rewrite_step("finest_axes"));
}

// 4 does not divide 30, which a run without elements may have.
TEST(Views, AreNotMadeOfFinestAxesWithoutElements) {
  const Planned p = plan_of(kGroupNorm, {{.shape = {0, 30, 16}}, {.shape = {30}}});
  for (const Step& step : p.compiled.automatic->steps) EXPECT_NE(step, rewrite_step("finest_axes"));
}

}  // namespace
}  // namespace fusebox
