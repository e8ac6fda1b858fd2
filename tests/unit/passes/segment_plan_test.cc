#include <gtest/gtest.h>

#include "ir/build/builder.h"
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

}  // namespace
}  // namespace fusebox
