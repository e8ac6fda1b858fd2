// Fusions whose outputs have no element: a kernel with a grid of no block.
#include <gtest/gtest.h>

#include "tests/support/automatic.h"
#include "tests/support/program_text.h"

namespace fusebox::testing {
namespace {

const std::string kAdd = program_text("add_row");

TEST(NoOp, TakesOutputsWithoutElements) {
  const std::pair<int64_t, int64_t> cases[] = {{0, 5}, {7, 0}, {0, 0}};
  for (const auto& [m, n] : cases) {
    const Planned p = plan_of(kAdd, contiguous({{m, n}, {n}}));
    EXPECT_EQ(p.scheduler(), "no_op") << p.why("no_op");
    EXPECT_EQ(p.choice("vector"), 1);
    EXPECT_EQ(p.choice("threads"), default_device().warp);
    EXPECT_TRUE(p.vectors().empty());
  }
}

TEST(NoOp, DeclinesOutputsWithElements) {
  const Planned p = plan_of(kAdd, contiguous({{1, 1}, {1}}));
  EXPECT_EQ(p.scheduler(), "pointwise");
  EXPECT_EQ(p.why("no_op"), "the output %y has elements");
}

// A sum over no element is 0, so there is something to compute.
TEST(NoOp, DeclinesASumOverNoElement) {
  const Planned p = plan_of(program_text("row_sum"), contiguous({{3, 0}}));
  EXPECT_EQ(p.why("no_op"), "the output %y has elements");
}

// The loops of %y merge an axis that is one element in %e.
TEST(NoOp, DeclinesABroadcastThatIsStoredAndStretched) {
  const Planned p = plan_of(
      "fusion @f {\n  %x = input f32[0, 1*2] contiguous\n  %z = input f32[0, 2] contiguous\n  %e = neg %x\n"
      "  %y = add %z, %e\n  output %y\n  output %e\n}\n",
      contiguous({{0, 2}, {0, 2}}));
  EXPECT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
  EXPECT_EQ(p.why("no_op"),
            "its loops would be refused: consumer %y_made reads a value of another thread through local memory; put "
            "the tensor in "
            "shared memory or give both one block.x loop (%e.t)");
}

// Both have two rows, as %m is 2. No form of the extents shows it.
TEST(NoOp, DeclinesRowsThatAreEqualInThisRunAlone) {
  const Planned p = plan_of(
      "fusion @f {\n  %m = size\n  %n = size\n  %k = size\n  %x = input f32[%m, 2] contiguous\n"
      "  %s = slice %x from [0, 1] to [2, %n] by [1, 1]\n  %z = input f32[%n, 2, %k] contiguous\n"
      "  %b = broadcast %s mask [1, 0, 0]\n  %y = sub %z, %b\n  output %y\n}\n",
      contiguous({{2, 2}, {1, 2, 0}}));
  EXPECT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.why("no_op"),
            "its loops would be refused: the loop is not the same one in consumer %b; give both the same transforms or "
            "inline "
            "further out (%s.o)");
}

}  // namespace
}  // namespace fusebox::testing
