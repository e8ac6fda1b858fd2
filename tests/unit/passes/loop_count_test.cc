#include "passes/kernel/loop_count.h"

#include <gtest/gtest.h>

#include "ir/text/parse.h"

namespace fusebox {
namespace {

// The count of each loop of the kernel, in its order. 0: it is not known.
std::vector<int64_t> counts_of(const std::string& loops) {
  const Module m =
      parse_module("kernel @k index 64 {\n  %y = input f32[?] global\n  %n = input index\n" + loops + "}\n");
  const Graph& g = main_graph(m);
  std::vector<int64_t> counts;
  for (const OpId op : ops_in_order(g))
    if (g[op].kind == OpKind::kFor) counts.push_back(known_count(g, g[op]).value_or(0));
  return counts;
}

TEST(LoopCount, IsKnownForConstantBoundsAndForStrips) {
  EXPECT_EQ(counts_of("  for 0, 24, 1 { index %i\n    store %y at %i, 0.0_f32\n  }\n"), std::vector<int64_t>{24});
  EXPECT_EQ(counts_of("  for 3, 24, 5 { index %i\n    store %y at %i, 0.0_f32\n  }\n"), std::vector<int64_t>{5});
  EXPECT_EQ(counts_of("  for 0, %n, 1 { index %i\n    store %y at %i, 0.0_f32\n  }\n"), std::vector<int64_t>{0});
  EXPECT_EQ(counts_of("  for 4, 4, 1 { index %i\n    store %y at %i, 0.0_f32\n  }\n"), std::vector<int64_t>{0});
  const auto strips = counts_of(
      "  for 0, %n, 8 { index %i\n    %end = add %i, 8\n    for %i, %end, 3 { index %j\n      store %y at %j, "
      "0.0_f32\n    "
      "}\n  }\n");
  EXPECT_EQ(strips, (std::vector<int64_t>{0, 3}));
}

TEST(LoopCount, OfBoundsAtTheEndsOf64Bits) {
  const auto loop = [](const std::string& bounds) {
    return counts_of("  for " + bounds + " { index %i\n    store %y at %i, 0.0_f32\n  }\n");
  };
  EXPECT_EQ(loop("0, 9223372036854775807, 8"), std::vector<int64_t>{int64_t{1} << 60});
  EXPECT_EQ(loop("-2, 9223372036854775807, 8"), std::vector<int64_t>{0});
}

}  // namespace
}  // namespace fusebox
