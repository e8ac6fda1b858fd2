// Fusions whose outputs have no element: a kernel with a grid of no block.
#include <gtest/gtest.h>

#include "tests/support/automatic.h"

namespace fusebox {
namespace {

using testing::plan_of;
using testing::Planned;

constexpr const char* kAdd = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %b = input f32[%n] contiguous
  %bb = broadcast %b mask [1, 0]
  %y = add %x, %bb
  output %y
}
)";

TEST(NoOp, TakesOutputsWithoutElements) {
  const std::pair<int64_t, int64_t> cases[] = {{0, 5}, {7, 0}, {0, 0}};
  for (const auto& [m, n] : cases) {
    const Planned p = plan_of(kAdd, {{.shape = {m, n}, .align = 256}, {.shape = {n}, .align = 256}});
    EXPECT_EQ(p.scheduler(), "no_op") << p.why("no_op");
    EXPECT_EQ(p.choice("vector"), 1);
    EXPECT_EQ(p.choice("threads"), default_device().warp);
    EXPECT_TRUE(p.vectors().empty());
  }
}

TEST(NoOp, DeclinesOutputsWithElements) {
  const Planned p = plan_of(kAdd, {{.shape = {1, 1}, .align = 256}, {.shape = {1}, .align = 256}});
  EXPECT_EQ(p.scheduler(), "pointwise");
  EXPECT_EQ(p.why("no_op"), "the output %y has elements");
}

// A sum over no element is 0, so there is something to compute.
TEST(NoOp, DeclinesASumOverNoElement) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = sum %x over [1]
  output %y
}
)",
                            {{.shape = {3, 0}, .align = 256}});
  EXPECT_EQ(p.why("no_op"), "the output %y has elements");
}

}  // namespace
}  // namespace fusebox
