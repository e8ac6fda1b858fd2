// Tensors that loops reach over one of two inputs, and random numbers that one op reads.
#include <gtest/gtest.h>

#include "ir/domain/domain.h"
#include "tests/support/automatic.h"

namespace fusebox {
namespace {

using testing::plan_of;
using testing::Planned;

// A program that sums the product of two small tensors, reads both axes again by one select, and then does the rest.
std::string select_beside_sum(const std::string& rest) {
  return R"(fusion @f {
  %n, %m, %k = size
  %tab = input f32[%n, %k] contiguous
  %q = input i64[%m] contiguous
  %one = input i64[1] contiguous
  %u = index_select %tab, %one axis 1 : f32[%n, 1]
  %qf = cast %q as f32 : f32[%m]
  %qb = broadcast %qf mask [1, 0] : f32[1, %m]
  %y = mul %u, %qb : f32[%n, %m]
  %g = index_select %tab, %q axis 1 : f32[%n, %m]
  %s = sum %y over [0] : f32[%m]
)" + rest +
         "}\n";
}

// The axes that are serial loops as they are, of lengths that only a run knows.
std::string serial_axes(const Planned& p) {
  std::string found;
  for (const Graph& g : p.compiled.scheduled)
    for (OpId op : g[Graph::body()].ops) {
      if (g[op].kind == OpKind::kInput) continue;
      for (ValueId v : g[op].results) {
        if (!g.is_tensor(v)) continue;
        for (DomainId d : loop_of(g.tensor_of(v)))
          if (!g[d].def && !is_thread(g[d].parallel) && g[d].iter_type == IterType::kIteration &&
              !constant_integer(g, g[d].extent))
            found += " %" + g[v].name + "." + g[d].name;
      }
    }
  return found;
}

TEST(LeftBehind, ASelectBesideAProduct) {
  const Planned p = plan_of(R"(fusion @f {
  %n, %m, %k = size
  %tab = input f32[%n, %k] contiguous
  %q = input i64[%m] contiguous
  %u = select %tab, 0_index axis 1 : f32[%n]
  %ub = broadcast %u mask [0, 1] : f32[%n, 1]
  %qf = cast %q as f32 : f32[%m]
  %qb = broadcast %qf mask [1, 0] : f32[1, %m]
  %y = mul %ub, %qb : f32[%n, %m]
  %g = index_select %tab, %q axis 1 : f32[%n, %m]
  output %y
  output %g
}
)",
                            {{.shape = {300, 64}, .align = 256}, {.shape = {5000}, .align = 256}});
  EXPECT_EQ(serial_axes(p), "");
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 2u);
}

TEST(LeftBehind, ASelectBehindASlice) {
  const Planned p = plan_of(R"(fusion @f {
  %n, %m, %k = size
  %tab = input f32[%k, %m] contiguous
  %at = input i64[%n] contiguous
  %g = index_select %tab, %at axis 0 : f32[%n, %m]
  %u = select %tab, 0_index axis 0 : f32[%m]
  %ub = broadcast %u mask [1, 0] : f32[1, %m]
  %af = cast %at as f32 : f32[%n]
  %ab = broadcast %af mask [0, 1] : f32[%n, 1]
  %y = mul %ub, %ab : f32[%n, %m]
  %z = slice %g from [0, 0] to [%n, %m] by [1, 1] : f32[?, ?]
  output %y
  output %z
}
)",
                            {{.shape = {64, 5000}, .align = 256}, {.shape = {300}, .align = 256}});
  EXPECT_EQ(serial_axes(p), "");
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 2u);
}

TEST(LeftBehind, ASelectBesideASum) {
  const Planned p =
      plan_of(select_beside_sum(R"(  %e = exp %g : f32[%n, %m]
  output %s
  output %e
)"),
              {{.shape = {300, 64}, .align = 256}, {.shape = {5000}, .align = 256}, {.shape = {1}, .align = 256}});
  EXPECT_EQ(serial_axes(p), "");
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 2u);
}

TEST(LeftBehind, ASelectBesideANormalisation) {
  const Planned p =
      plan_of(select_beside_sum(R"(  %sb = broadcast %s mask [1, 0] : f32[1, %m]
  %z = sub %y, %sb : f32[%n, %m]
  output %z
  output %g
)"),
              {{.shape = {3, 50}, .align = 256}, {.shape = {70001}, .align = 256}, {.shape = {1}, .align = 256}});
  EXPECT_EQ(serial_axes(p), "");
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 2u);
}

TEST(LeftBehind, ASelectBesideSumsOfBothAxes) {
  const Planned p =
      plan_of(select_beside_sum(R"(  %sb = broadcast %s mask [1, 0] : f32[1, %m]
  %z = sub %y, %sb : f32[%n, %m]
  output %z
  %t = sum %g over [1] : f32[%n]
  output %t
)"),
              {{.shape = {300, 64}, .align = 256}, {.shape = {5000}, .align = 256}, {.shape = {1}, .align = 256}});
  EXPECT_EQ(serial_axes(p), "");
  EXPECT_EQ(p.compiled.segmentation.segments.size(), 2u);
}

// The random numbers are made where they are read, and not stored before the sum.
TEST(Cut, RandomNumbersOfOneReaderAreMadeThere) {
  const Planned p = plan_of(R"(fusion @f {
  %n, %m = size
  %x = input f32[%n, %m] contiguous
  %s = sum %x over [1] : f32[%n]
  %sb = broadcast %s mask [0, 1] : f32[%n, 1]
  %r = uniform 0.0_f32, 1.0_f32 seed 3_i64 offset 5_u64 of [%n, %m] as f32 : f32[%n, %m]
  %y = sub %r, %sb : f32[%n, %m]
  output %y
}
)",
                            {{.shape = {300, 5000}, .align = 256}});
  ASSERT_EQ(p.compiled.segmentation.segments.size(), 2u);
  EXPECT_EQ(std::ranges::count(p.compiled.segmentation.segments[1].ops, "r"), 1);
}

}  // namespace
}  // namespace fusebox
