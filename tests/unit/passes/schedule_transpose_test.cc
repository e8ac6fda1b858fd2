// When the scheduler of transposes takes a fusion, and what its tiles move at once.
#include <gtest/gtest.h>

#include "tests/support/automatic.h"

namespace fusebox::testing {
namespace {

TEST(Transpose, TilesHaveVectorsOnBothSides) {
  const Planned p = plan_of_file("corpus/schedules/transpose_add.fir", {{8192, 8192}, {8192, 8192}});
  ASSERT_EQ(p.scheduler(), "transpose") << p.why("transpose");
  EXPECT_EQ(p.choice("tile"), 64);
  EXPECT_EQ(p.choice("vector"), 8);
  EXPECT_EQ(p.choice("rows"), 32);
  // Tiles inside and tiles at an end take different branches.
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 2 * 3}}));
}

TEST(Transpose, OddSizesHaveTilesWithoutVectors) {
  const Planned p = plan_of_file("corpus/schedules/transpose_add.fir", {{8191, 8193}, {8193, 8191}});
  ASSERT_EQ(p.scheduler(), "transpose") << p.why("transpose");
  EXPECT_EQ(p.choice("vector"), 1);
  EXPECT_EQ(p.choice("tile"), 32);
  EXPECT_EQ(p.choice("rows"), 4);
  EXPECT_TRUE(p.vectors().empty());
}

TEST(Transpose, ShortVectorsHaveLargeTiles) {
  const Planned p = plan_of_file("corpus/schedules/transpose_add.fir", {{29260, 9920}, {9920, 29260}});
  ASSERT_EQ(p.scheduler(), "transpose") << p.why("transpose");
  EXPECT_EQ(p.choice("vector"), 4);
  EXPECT_EQ(p.choice("tile"), 64);
  EXPECT_EQ(p.choice("rows"), 16);
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{8, 2 * 3}}));
}

// So that every multiprocessor has some.
TEST(Transpose, SmallTensorsHaveSmallTiles) {
  const Planned p = plan_of_file("corpus/schedules/transpose_add.fir", {{832, 104}, {104, 832}});
  ASSERT_EQ(p.scheduler(), "transpose") << p.why("transpose");
  EXPECT_EQ(p.choice("vector"), 8);
  EXPECT_EQ(p.choice("tile"), 32);
  EXPECT_EQ(p.choice("rows"), 32);
  const Planned odd = plan_of_file("corpus/schedules/transpose_add.fir", {{349, 705}, {705, 349}});
  ASSERT_EQ(odd.scheduler(), "transpose") << odd.why("transpose");
  EXPECT_EQ(odd.choice("vector"), 1);
  EXPECT_EQ(odd.choice("tile"), 16);
  EXPECT_EQ(odd.choice("rows"), 8);
}

TEST(Transpose, ATensorAndItsTransposeAreReadOnceEach) {
  constexpr const char* kProgram = R"(fusion @f {
  %n = size
  %x = input f32[%n, %n] contiguous
  %t = permute %x dims [1, 0]
  %y = add %x, %t
  output %y
}
)";
  const Planned p = plan_of(kProgram, contiguous({{512, 512}}));
  ASSERT_EQ(p.scheduler(), "transpose") << p.why("transpose");
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 2 * 3}}));
}

TEST(Transpose, AxesThatStayInnermostNeedNoTile) {
  constexpr const char* kProgram = R"(fusion @f {
  %a, %b, %c = size
  %x = input f32[%a, %b, %c] contiguous
  %y = permute %x dims [1, 0, 2]
  output %y
}
)";
  const Planned p = plan_of(kProgram, contiguous({{64, 32, 128}}));
  ASSERT_EQ(p.scheduler(), "pointwise") << p.why("pointwise");
  EXPECT_FALSE(p.why("transpose").empty());
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 2}}));
}

}  // namespace
}  // namespace fusebox::testing
