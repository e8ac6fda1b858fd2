// Where the automatic plan cuts a fusion.
#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/canonical/canonical.h"
#include "ir/graph/compact.h"
#include "passes/automatic/cut_windows.h"
#include "tests/support/automatic.h"

namespace fusebox {
namespace {

using testing::plan_of;
using testing::Planned;

// An op that reads a tensor twice wants one copy of it.
TEST(Cut, AnOpThatReadsATensorTwiceIsScheduled) {
  const Planned p = plan_of(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %a = exp %x : f32[%n]
  %b = mul %a, %a : f32[%n]
  %row = broadcast %b mask [1, 0] : f32[1, %n]
  %column = broadcast %b mask [0, 1] : f32[%n, 1]
  %y = add %row, %column : f32[%n, %n]
  output %y
}
)",
                            {{.shape = {24}, .align = 256}});
  EXPECT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
  for (const Decision& d : p.compiled.automatic->decisions)
    for (const Declined& why : d.declined) EXPECT_FALSE(why.why.starts_with("its schedule is refused")) << why.why;
}

Graph norms(int count) {
  Graph g = fusion("f");
  const ValueId m = size(g, "m"), n = size(g, "n");
  ValueId v = input(g, "x", Dtype::kFloat, {m, n});
  for (int i = 0; i < count; ++i) {
    const ValueId row = broadcast(g, sum(g, mul(g, v, v), {1}), {false, true});
    v = add(g, v, mul(g, v, row));
  }
  output(g, v);
  return canonical_order(g);
}

int reductions(const Graph& g, const Segment& s) {
  int count = 0;
  for (const std::string& name : s.ops) count += demands(g[g[*find_value(g, name)].def].kind, kReduction) ? 1 : 0;
  return count;
}

// Each reduction of a chain is a walk over the rows. A long chain is cut, so that its time does not grow with its square.
TEST(Cut, AChainOfReductionsIsCut) {
  for (const int count : {2, 8, 9, 30}) {
    const Planned p = plan_of(norms(count), {{.shape = {4096, 4096}, .align = 256}});
    int all = 0;
    for (const Segment& s : p.compiled.segmentation.segments) {
      EXPECT_LE(reductions(p.compiled.concretized, s), 8);
      all += reductions(p.compiled.concretized, s);
    }
    EXPECT_EQ(all, count);
    EXPECT_LE(p.compiled.segmentation.segments.size(), static_cast<size_t>((count + 7) / 8 + 1));
  }
}

// So many updates of optimizers, which have nothing in common. Each overwrites three inputs.
Graph updates(int count) {
  Graph g = fusion("f");
  const ValueId m = size(g, "m"), n = size(g, "n");
  for (int i = 0; i < count; ++i) {
    const std::string at = std::to_string(i);
    std::vector<ValueId> in;
    for (const char* name : {"p", "g", "m", "v"}) in.push_back(input(g, name + at, Dtype::kFloat, {m, n}));
    const ValueId square = mul(g, in[1], in[1]);
    const ValueId mean = add(g, mul(g, in[2], in[2]), mul(g, in[1], square));
    const ValueId power = add(g, mul(g, in[3], square), square);
    const ValueId step = truediv(g, mean, add(g, unary(g, OpKind::kSqrt, power), square));
    output(g, sub(g, in[0], mul(g, step, mean)), in[0]);
    output(g, mean, in[2]);
    output(g, power, in[3]);
  }
  return canonical_order(g);
}

// More ops than are cut at once. What no two updates share is no reason to store anything but results.
TEST(Cut, IndependentPartsAreCutByThemselves) {
  for (const int count : {2, 8, 60}) {
    const Planned p = plan_of(
        updates(count), std::vector<BoundInput>(4 * static_cast<size_t>(count), {.shape = {4096, 4096}, .align = 256}));
    size_t stored = 0;
    for (const Segment& s : p.compiled.segmentation.segments) stored += s.outputs.size();
    EXPECT_EQ(stored, 3 * static_cast<size_t>(count));
    EXPECT_LE(p.compiled.segmentation.segments.size(), static_cast<size_t>(count));
  }
}

TEST(CutWindows, TakeNeighboursTogetherAndStretchesOfTheWhole) {
  CutWindows windows({{0, 3}, {3, 5}, {5, 12}, {12, 14}}, 5);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0], (Stretch{0, 5}));
  EXPECT_EQ(windows[1], (Stretch{5, 12}));
  EXPECT_EQ(windows[2], (Stretch{12, 14}));
  std::vector<Stretch> asked;
  const auto costs = std::vector<std::vector<double>>{{}, {1}, {1, 1}};
  windows.begin(2, costs, [&](Stretch s) { return asked.push_back(s), true; });
  EXPECT_EQ(windows.cheapest(2), (std::vector<Stretch>{{12, 14}}));
  windows.refuse({10, 14});  // of two windows: in none
  EXPECT_EQ(windows.cheapest(2), (std::vector<Stretch>{{12, 14}}));
  windows.refuse({12, 14});
  EXPECT_EQ(windows.cheapest(2), (std::vector<Stretch>{{12, 13}, {13, 14}}));
  for (const Stretch& s : asked) EXPECT_GE(s.begin, 12u);
}

// y = x through `count` ops, less a, and its sums of rows lie over a.
Planned sums_over_an_input(int count) {
  Graph g = fusion("f");
  const ValueId m = size(g, "m"), n = size(g, "n");
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n}), a = input(g, "a", Dtype::kFloat, {m});
  ValueId v = x;
  for (int i = 0; i < count; ++i) v = unary(g, OpKind::kNeg, v);
  output(g, sum(g, sub(g, v, broadcast(g, a, {false, true})), {1}), a);
  return plan_of(canonical_order(g), testing::contiguous({{64, 400}, {64}}));
}

// Many threads read an element of a, so none of them may store a sum there. The sums are copied at the end, however many
// ops there are. A run with the plan's steps repeats that.
TEST(Cut, AnOutputOverAnInputIsNoReasonToCut) {
  for (const int count : {0, 50, 100}) {
    const Planned p = sums_over_an_input(count);
    ASSERT_EQ(p.compiled.segmentation.segments.size(), 1u);
    EXPECT_EQ(p.scheduler(), "reduction");
    EXPECT_NE(p.why("in place").find("overwrote it"), std::string::npos) << p.why("in place");
    EXPECT_EQ(p.compiled.segmentation.segments[0].outputs[0].alias, "");
    const auto copies =
        std::ranges::count_if(p.compiled.host.ops, [](const Op& op) { return op.kind == OpKind::kCopyTensor; });
    EXPECT_EQ(copies, 1);
    CompileOptions repeated;
    repeated.steps = p.compiled.automatic->steps;
    repeated.inputs = testing::contiguous({{64, 400}, {64}});
    const Compiled again = compile(p.fusion, bind_sizes(p.fusion, repeated.inputs), repeated);
    EXPECT_TRUE(same_members(again.host, p.compiled.host));
    EXPECT_TRUE(same_members(again.kernels[0], p.compiled.kernels[0]));
  }
}

// How long %s is along both axes, its slice decides at a run, so nothing shows that %c can be read in vectors. It is read
// without.
TEST(Cut, ASchedulerThatFailsWithVectorsIsAskedWithNarrowerOnes) {
  const std::string program = R"(fusion @f {
  %m, %n = size
  %lo = input index
  %hi = input index
  %x = input i8[%m, %n] contiguous
  %s = slice %x from [%lo, %lo] to [%hi, %hi] by [1, 1]
  %c = cumprod %s axis 0
  %y = max %c over [0, 1]
  output %y
}
)";
  std::vector<BoundInput> inputs(3);
  inputs[0] = {.is_scalar = true, .bits = static_cast<uint64_t>(-256)};
  inputs[1] = {.is_scalar = true, .bits = 512};
  inputs[2] = {.shape = {512, 512}, .align = 256};
  const auto decisions = plan_of(program, inputs).compiled.automatic->decisions;
  ASSERT_EQ(decisions.size(), 3u);
  EXPECT_EQ(decisions[2].heuristics.scheduler, "reduction");
  EXPECT_EQ(decisions[2].heuristics.number("vector"), 1);
}

}  // namespace
}  // namespace fusebox
