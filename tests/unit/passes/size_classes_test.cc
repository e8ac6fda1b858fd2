// Classes of sizes: what planning may know of a run.
#include "passes/schedule/size_classes.h"

#include <gtest/gtest.h>
#include <limits>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"

namespace fusebox {
namespace {

TEST(SizeClasses, SmallSizesHaveClassesOfTheirOwn) {
  for (int64_t n = 0; n <= 8; ++n) EXPECT_EQ(class_of_size(n).most, n);
  // A slice may begin there, and no vector.
  EXPECT_EQ(class_of_size(-4), (SizeClass{0, 1}));
}

TEST(SizeClasses, AreBoundedByFourBoundsInEachPowerOfTwo) {
  EXPECT_EQ(class_of_size(4096), (SizeClass{4096, 64}));
  EXPECT_EQ(class_of_size(4097), (SizeClass{5120, 1}));
  EXPECT_EQ(class_of_size(4099), (SizeClass{5120, 1}));
  EXPECT_EQ(class_of_size(5120), (SizeClass{5120, 64}));
  EXPECT_EQ(class_of_size(50304), (SizeClass{57344, 64}));
  EXPECT_EQ(class_of_size(24), (SizeClass{24, 8}));
}

TEST(SizeClasses, TellNothingThatIsNotTrue) {
  for (int64_t n = 1; n < 300000; n += n < 5000 ? 1 : 37) {
    const SizeClass c = class_of_size(n);
    ASSERT_LE(n, c.most);
    if (n >= 5) {
      ASSERT_GE(5 * n, 4 * c.most) << n;
    }
    ASSERT_EQ(n % c.divisor, 0);
    ASSERT_TRUE(c.divisor == 64 || n % (2 * c.divisor) != 0);
  }
}

TEST(SizeClasses, HaveNoOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(class_of_size(kMost).most, kMost);
  EXPECT_GE(class_of_size(kMost / 2 + 2).most, kMost / 2 + 2);
}

TEST(SizeClasses, OfAGraphAreThoseOfItsBindings) {
  const Graph g = parse_graph(R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n, 1] contiguous
  %y = neg %x
  output %y
})");
  const SizeClasses a(g, bind_sizes(g, std::vector<BoundInput>{{.shape = {4099, 24, 1}}}));
  const ValueId y = *find_value(g, "y");
  const auto& axes = g.tensor_of(y).logical;
  EXPECT_EQ(a.of(axes[0]), (SizeClass{5120, 1}));
  EXPECT_EQ(a.of(axes[1]), (SizeClass{24, 8}));
  EXPECT_EQ(a.of(axes[2]), class_of_size(1));
  EXPECT_EQ(a.of(*find_value(g, "n")), (SizeClass{24, 8}));
  EXPECT_EQ(a, SizeClasses(g, bind_sizes(g, std::vector<BoundInput>{{.shape = {4201, 24, 1}}})));
  EXPECT_NE(a, SizeClasses(g, bind_sizes(g, std::vector<BoundInput>{{.shape = {4202, 24, 1}}})));
}

TEST(MemoryClasses, KnowAlignmentAndStridesUpToAVector) {
  const Graph g = parse_graph(R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n] contiguity [false, true]
  %y = neg %x
  output %y
})");
  const MemoryClasses c =
      memory_classes(g, std::vector<BoundInput>{{.shape = {5, 8}, .strides = {24, 1}, .align = 4096 + 8}});
  EXPECT_EQ(c.at("x").align, 8);
  EXPECT_EQ(c.at("x").stride_divisors, (std::vector<int64_t>{8, 1}));
  EXPECT_EQ(
      memory_classes(g, std::vector<BoundInput>{{.shape = {5, 8}, .strides = {24, 1}, .align = 256}}).at("x").align,
      16);
  EXPECT_TRUE(memory_classes(g, {}).empty());
}

}  // namespace
TEST(SizeClasses, EverySizeOfAClassIsLargerThanTheClassBelow) {
  int64_t below = 0;
  for (int64_t n = 1; n <= 20000; ++n) {
    const SizeClass c = class_of_size(n);
    EXPECT_EQ(below_class(c), below) << n;
    if (c.most == n) below = n;
  }
  EXPECT_EQ(below_class({INT64_MAX, 1}), 0);
  EXPECT_EQ(below_class(class_of_size(0)), 0);
}

}  // namespace fusebox
