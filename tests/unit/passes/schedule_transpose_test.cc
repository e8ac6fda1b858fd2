// When the scheduler of transposes takes a fusion, and what its tiles move at once.
#include <gtest/gtest.h>

#include "tests/support/automatic.h"

namespace fusebox::testing {
namespace {

struct Tiles {
  int64_t vector, tile, rows;
};
// The plan of a tensor of [m, n] and another one's transpose, which the scheduler of transposes takes with these choices.
Planned expect_tiles(int64_t m, int64_t n, const Tiles& tiles) {
  Planned p = plan_of_file("corpus/schedules/transpose_add.fir", {{m, n}, {n, m}});
  EXPECT_EQ(p.scheduler(), "transpose") << p.why("transpose");
  if (p.scheduler() != "transpose") return p;
  EXPECT_EQ(p.choice("vector"), tiles.vector) << m << " x " << n;
  EXPECT_EQ(p.choice("tile"), tiles.tile) << m << " x " << n;
  EXPECT_EQ(p.choice("rows"), tiles.rows) << m << " x " << n;
  return p;
}

TEST(Transpose, TilesHaveVectorsOnBothSides) {
  const Planned p = expect_tiles(8192, 8192, {.vector = 8, .tile = 64, .rows = 32});
  // Tiles inside and tiles at an end take different branches.
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{16, 2 * 3}}));
}

TEST(Transpose, OddSizesHaveTilesWithoutVectors) {
  const Planned p = expect_tiles(8191, 8193, {.vector = 1, .tile = 32, .rows = 4});
  EXPECT_TRUE(p.vectors().empty());
}

TEST(Transpose, ShortVectorsHaveLargeTiles) {
  const Planned p = expect_tiles(29260, 9920, {.vector = 4, .tile = 64, .rows = 32});
  EXPECT_EQ(p.vectors(), (std::map<int64_t, int>{{8, 2 * 3}}));
}

// More and smaller tiles leave fewer multiprocessors without one.
TEST(Transpose, SmallTensorsHaveSmallTiles) {
  expect_tiles(832, 104, {.vector = 8, .tile = 32, .rows = 32});
  expect_tiles(349, 705, {.vector = 1, .tile = 16, .rows = 8});
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

TEST(Transpose, NarrowVectorsTakeMoreThreads) {
  expect_tiles(58176, 7634, {.vector = 2, .tile = 64, .rows = 16});
  expect_tiles(174, 37786, {.vector = 2, .tile = 64, .rows = 16});
  expect_tiles(7361, 32921, {.vector = 1, .tile = 64, .rows = 4});
}

// The loops of a tensor do not spread to another one by a single element.
TEST(Transpose, DeclinesACopyThatSingleElementsConnect) {
  constexpr const char* kProgram = R"(fusion @f {
  %m, %n = size
  %s = input i64[1] contiguous
  %x = input f32[i0 iter %m, i1 iter %n] contiguous { allocation [i1, i0] }
  %z = input f32[%m, %n] contiguous
  %sb = broadcast %s mask [0, 1]
  %y = add %x, %sb
  %sc = broadcast %s mask [0, 1]
  %w = mul %z, %sc
  output %x alias %x
  output %w alias %z
  output %y
}
)";
  auto inputs = contiguous({{1}, {500, 500}, {500, 500}});
  inputs[1].strides = {1, 500};
  const Planned p = plan_of(kProgram, inputs);
  EXPECT_NE(p.why("transpose").find("nothing but single elements connects"), std::string::npos) << p.why("transpose");
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
