// The fusions that the scheduler of slices, pads and joined tensors takes, and how much its kernels move at once.
#include <gtest/gtest.h>

#include "tests/support/automatic.h"

namespace fusebox::testing {
namespace {

// The program is one kernel by this scheduler, with these choices.
void expect_choices(const Planned& p, const std::vector<std::pair<std::string, int64_t>>& choices) {
  ASSERT_EQ(p.scheduler(), "resize") << p.why("resize");
  for (const auto& [key, number] : choices) EXPECT_EQ(p.choice(key), number) << key;
}

// The halves of a row are an axis, so the pads leave the innermost axis as it is.
TEST(Resize, VectorsGoPastAPadOfAnotherAxis) {
  const Planned p = plan_of_file("corpus/schedules/rope.fir", {{64, 4096, 2, 64}, {4096, 2, 64}, {4096, 2, 64}});
  expect_choices(p, {{"axes", 1},
                     {"vector", 8},
                     {"%x_in", 8},
                     {"%x_in_1", 8},
                     {"%x_in_2", 8},
                     {"%cos_in", 4},
                     {"%y", 8},
                     {"reuse", 8}});
  // A thread has both halves, so it loads each element of %x once.
  EXPECT_EQ(p.compiled.automatic->decisions.at(0).heuristics.word("parts"), "i2");
}

// Each part of one element is loaded for all places, so many of them are kept apart.
TEST(Resize, FewTensorsSideBySideAreOneKernel) {
  const auto stacked = [](int count, int axis) {
    std::string text = "fusion @f {\n  %m, %n = size\n", operands;
    for (int i = 0; i < count; ++i) {
      const std::string k = std::to_string(i);
      text += "  %x" + k + " = input f32[%m, %n] contiguous\n  %b" + k + " = broadcast %x" + k + " mask " +
              (axis == 0   ? "[1, 0, 0]"
               : axis == 1 ? "[0, 1, 0]"
                           : "[0, 0, 1]") +
              "\n";
      operands += (i > 0 ? ", %b" : "%b") + k;
    }
    text += "  %z = cat [" + operands + "] axis " + std::to_string(axis) + "\n  output %z\n}\n";
    return plan_of(text, contiguous(std::vector<std::vector<int64_t>>(static_cast<size_t>(count), {64, 512})));
  };
  for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(stacked(2, axis).scheduler(), "resize") << axis;
  EXPECT_EQ(stacked(4, 2).scheduler(), "resize");
  EXPECT_NE(stacked(5, 2).why("resize").find("joins many tensors of one element"), std::string::npos);
  EXPECT_NE(stacked(3, 0).why("resize").find("joins many tensors of one element"), std::string::npos);
}

// An axis of few elements is walked whole where a slice, a pad or a cat moves them, and neither outermost nor innermost.
TEST(Resize, AThreadHasAllPartsOfAShortAxis) {
  const auto parts_of = [](const std::string& pads, const std::string& shape) -> std::string {
    const Planned p =
        plan_of("fusion @f {\n  %m, %n = size\n  %x = input f32[%m, 3, %n] contiguous\n  %p = pad %x by " + pads +
                    "\n  %y = neg %p : f32[" + shape + "]\n  output %y\n}\n",
                contiguous({{512, 3, 64}}));
    EXPECT_EQ(p.scheduler(), "resize") << p.why("resize");
    const auto& choices = p.compiled.automatic->decisions.at(0).heuristics.choices;
    const auto it = std::ranges::find(choices, "parts", &Heuristic::key);
    return it == choices.end() ? "none" : it->word;
  };
  EXPECT_EQ(parts_of("[0, 0, 1, 0, 0, 0]", "%m, 4, %n"), "i1");
  EXPECT_EQ(parts_of("[0, 0, 1, 1, 0, 0]", "%m, 5, %n"), "none");
  EXPECT_EQ(parts_of("[0, 0, 0, 0, 1, 0]", "?, 3, %n"), "none");
}

// Each rotation reads its operand at three places, so a chain of them in one kernel would compute the first 81 times.
TEST(Resize, AChainOfRotationsIsCut) {
  std::string program = "fusion @f {\n  %m, %n = size\n  %x0 = input f32[%m, %n] contiguous\n";
  for (int i = 0; i < 4; ++i) {
    const std::string k = std::to_string(i), x = "%x" + k;
    program += "  %low" + k + " = slice " + x + " from [0, 0] to [%m, 256] by [1, 1]\n";
    program += "  %high" + k + " = slice " + x + " from [0, 256] to [%m, %n] by [1, 1]\n";
    program += "  %turned" + k + " = cat [%high" + k + ", %low" + k + "] axis 1\n";
    program += "  %x" + std::to_string(i + 1) + " = add " + x + ", %turned" + k + "\n";
  }
  const Planned p = plan_of(program + "  output %x4\n}\n", contiguous({{4096, 512}}));
  const auto& decisions = p.compiled.automatic->decisions;
  EXPECT_EQ(decisions.size(), 2u);
  for (const Decision& d : decisions) EXPECT_EQ(d.heuristics.scheduler, "resize");
}

// The halves are slices of the innermost axis, negated and joined again.
TEST(Resize, VectorsGoThroughSlicesAndACatOfTheInnermostAxis) {
  const Planned p = plan_of_file("corpus/programs/rope.fir", {{64, 4096, 128}, {4096, 128}, {4096, 128}});
  expect_choices(p, {{"vector", 8}, {"%x_in", 8}, {"%x_in_1", 8}, {"%x_in_2", 8}, {"%sin_in", 4}, {"%y", 8}});
}

// Each x is rotated by 256 columns, or by none if there are fewer: the offsets are the smaller of 256 and a size.
std::string rotations(int count) {
  std::string program = "fusion @f {\n  %m, %n = size\n  %x0 = input bf16[%m, %n] contiguous\n";
  for (int i = 0; i < count; ++i) {
    const std::string k = std::to_string(i), x = "%x" + k;
    program += "  %low" + k + " = slice " + x + " from [0, 0] to [%m, 256] by [1, 1]\n";
    program += "  %high" + k + " = slice " + x + " from [0, 256] to [%m, %n] by [1, 1]\n";
    program += "  %turned" + k + " = cat [%high" + k + ", %low" + k + "] axis 1\n";
    program += "  %x" + std::to_string(i + 1) + " = add " + x + ", %turned" + k + "\n";
  }
  return program + "  output %x" + std::to_string(count) + "\n}\n";
}

// A load in vectors has a loop of its own behind all slices and cats, which its readers walk alike.
TEST(Resize, VectorsGoThroughOffsetsThatAreTheSmallerOfTwo) {
  const Planned one = plan_of(rotations(1), contiguous({{4096, 512}}));
  expect_choices(one, {{"vector", 8}, {"%x0_in", 8}, {"%x0_in_1", 8}, {"%x0_in_2", 8}, {"%x1", 8}, {"multiple %n", 0}});
  const Planned two = plan_of(rotations(2), contiguous({{4096, 512}}));
  EXPECT_EQ(two.scheduler(), "resize") << two.why("resize");
  EXPECT_EQ(two.vectors(), (std::map<int64_t, int>{{16, 10}}));  // x at 9 places, and the store
  // 4 divides 500, and 8 does not.
  EXPECT_EQ(plan_of(rotations(1), contiguous({{4096, 500}})).vectors(), (std::map<int64_t, int>{{8, 4}}));
}

// Half of 120 is 60, which 4 divides and 8 does not.
TEST(Resize, AnOffsetNarrowsOnlyTheLoadsBehindIt) {
  const Planned p = plan_of_file("corpus/programs/rope.fir", {{64, 4096, 120}, {4096, 120}, {4096, 120}});
  expect_choices(p, {{"vector", 8}, {"%x_in", 8}, {"%x_in_1", 4}, {"%x_in_2", 4}, {"%y", 8}});
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
  expect_choices(p, {{"vector", 4}, {"%x_in", 0}, {"%w_in", 4}, {"%y", 4}});
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

// A copy of the input would need a loop over the elements that the pad adds to its broadcast axis.
TEST(Resize, ABroadcastThatIsPaddedIsReadInPlace) {
  for (const std::string to : {"by [0, 0, 2, 3]", "by [1, 3, 0, 3]"}) {
    const Planned p = plan_of("fusion @f {\n  %n = size\n  %x = input f32[1, %n] contiguous\n  %y = pad %x " + to +
                                  "\n  %z = exp %y\n  output %z\n}\n",
                              contiguous({{1, 32}}));
    EXPECT_EQ(p.scheduler(), "resize") << to << ": " << p.why("resize");
  }
}

// %n + %m + %n is %k + %m, but axis 0 makes %k and the other extent one.
TEST(Resize, JoinsWhereExtentsAreNotSeenToAddUp) {
  for (const std::string rows : {"%k", "6"}) {
    const Planned p =
        plan_of("fusion @f {\n  %m = size\n  %n = size\n  %k = mul %n, 2 : index\n  %b = input f32[" + rows +
                    ", %m] contiguous\n  %a = input f32[%k, %n] contiguous\n"
                    "  %c = cat [%a, %b, %a] axis 1\n  output %c\n}\n",
                contiguous({{6, 5}, {6, 3}}));
    EXPECT_EQ(p.scheduler(), "resize") << p.why("resize");
  }
}

}  // namespace
}  // namespace fusebox::testing
