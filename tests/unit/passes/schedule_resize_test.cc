// What the scheduler of slices, pads and joined tensors takes, and what its kernels move at once.
#include <gtest/gtest.h>

#include "tests/support/automatic.h"

namespace fusebox {
namespace {

using testing::plan_of;
using testing::Planned;
using testing::read_program;

std::vector<BoundInput> contiguous(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<BoundInput> result;
  for (const auto& shape : shapes) result.push_back({.shape = shape, .align = 256});
  return result;
}

// The halves of a row are an axis, so the pads leave the innermost axis as it is.
TEST(Resize, VectorsGoPastAPadOfAnotherAxis) {
  const Module m = read_program("corpus/schedules/rope.fir");
  const Planned p = plan_of(main_graph(m), contiguous({{64, 4096, 2, 64}, {4096, 2, 64}, {4096, 2, 64}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.choice("axes"), 1);
  EXPECT_EQ(p.choice("vector"), 8);
  EXPECT_EQ(p.choice("%x_in"), 8);
  EXPECT_EQ(p.choice("%x_in_1"), 8);
  EXPECT_EQ(p.choice("%x_in_2"), 8);
  EXPECT_EQ(p.choice("%cos_in"), 4);
  EXPECT_EQ(p.choice("%y"), 8);
  EXPECT_EQ(p.choice("reuse"), 8);
}

// The halves are slices of the innermost axis, negated and joined again.
TEST(Resize, VectorsGoThroughSlicesAndACatOfTheInnermostAxis) {
  const Module m = read_program("corpus/programs/rope.fir");
  const Planned p = plan_of(main_graph(m), contiguous({{64, 4096, 128}, {4096, 128}, {4096, 128}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.choice("vector"), 8);
  EXPECT_EQ(p.choice("%x_in"), 8);
  EXPECT_EQ(p.choice("%x_in_1"), 8);
  EXPECT_EQ(p.choice("%x_in_2"), 8);
  EXPECT_EQ(p.choice("%sin_in"), 4);
  EXPECT_EQ(p.choice("%y"), 8);
}

// Half of 120 is 60, which 4 divides and 8 does not.
TEST(Resize, AnOffsetNarrowsOnlyTheLoadsBehindIt) {
  const Module m = read_program("corpus/programs/rope.fir");
  const Planned p = plan_of(main_graph(m), contiguous({{64, 4096, 120}, {4096, 120}, {4096, 120}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.choice("vector"), 8);
  EXPECT_EQ(p.choice("%x_in"), 8);
  EXPECT_EQ(p.choice("%x_in_1"), 4);
  EXPECT_EQ(p.choice("%x_in_2"), 4);
  EXPECT_EQ(p.choice("%y"), 8);
}

constexpr const char* kShift = R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %w = input f32[%n] contiguous
  %s = slice %x from [3] to [%n] by [1]
  %p = pad %s by [0, 3]
  %y = add %p, %w
  output %y
}
)";

TEST(Resize, ALoadAtAnOddOffsetStaysScalarAndTheOthersKeepTheirWidth) {
  const Planned p = plan_of(kShift, contiguous({{4096}, {4096}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.choice("vector"), 4);
  EXPECT_EQ(p.choice("%x_in"), 0);
  EXPECT_EQ(p.choice("%w_in"), 4);
  EXPECT_EQ(p.choice("%y"), 4);
}

// A copy of one operand is a load of its own, also where data come straight from an input.
TEST(Resize, JoinedInputsAreLoadedInVectors) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %n, %k = size
  %x = input bf16[%m, %n] contiguous
  %z = input bf16[%m, %k] contiguous
  %y = cat [%x, %z] axis 1
  output %y
}
)",
                            contiguous({{512, 64}, {512, 32}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 3}}));
}

TEST(Resize, ATensorJoinedToItselfIsReadInPlace) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %y = cat [%x, %x] axis 1
  output %y
}
)",
                            contiguous({{512, 64}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
}

// An axis of one element that is expanded to one element is still no reason for narrow accesses.
TEST(Resize, AnExpandFactorOfOneKeepsTheWidth) {
  const Planned p = plan_of(R"(fusion @f {
  %m, %n, %k = size
  %x = input bf16[%m, %n] contiguous
  %z = input bf16[%m, %k] contiguous
  %c = cat [%x, %z] axis 1
  %b = broadcast %c mask [0, 1, 0]
  %q = add %n, %k
  %e = expand %b to [%m, 1, %q]
  %y = reshape %e to [%m, %q]
  output %y
}
)",
                            contiguous({{512, 64}, {512, 32}}));
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 3}}));
}

TEST(Resize, LeavesOtherFusionsToOtherSchedulers) {
  const Planned p = plan_of(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = sum %x over [0]
  output %y
}
)",
                            contiguous({{4096}}));
  EXPECT_EQ(p.scheduler(), "reduction");
  EXPECT_EQ(p.why("resize"), "no op slices, pads or joins a tensor");
}

}  // namespace
}  // namespace fusebox
