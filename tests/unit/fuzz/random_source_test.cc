#include "fuzz/base/random_source.h"

#include <gtest/gtest.h>
#include <map>

namespace fusebox::fuzz {
namespace {

TEST(RandomSource, TheSameSeedGivesTheSameChoices) {
  RandomSource a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.next();
    EXPECT_EQ(x, b.next());
    differs = differs || x != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(RandomSource, BytesDecideAndTheirEndEndsEverything) {
  const uint8_t bytes[] = {3, 200, 1, 2};
  RandomSource random{std::span<const uint8_t>(bytes)};
  EXPECT_EQ(random.below(10), 3u);
  EXPECT_EQ(random.below(7), 200u % 7);
  EXPECT_EQ(random.below(300), (1u + 256 * 2) % 300);
  EXPECT_TRUE(random.exhausted());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(random.below(5), 0u);
    EXPECT_FALSE(random.one_in(2));
    EXPECT_EQ(random.between(-3, 4), -3);
  }
}

TEST(RandomSource, AChoiceOfOneTakesNoByte) {
  const uint8_t bytes[] = {1};
  RandomSource random{std::span<const uint8_t>(bytes)};
  EXPECT_EQ(random.below(1), 0u);
  EXPECT_FALSE(random.exhausted());
}

TEST(RandomSource, WeightsAreKept) {
  RandomSource random(1);
  std::map<size_t, int> counts;
  const uint32_t weights[] = {0, 1, 3};
  for (int i = 0; i < 4000; ++i) ++counts[random.weighted(weights)];
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(counts[1], 1000, 150);
  EXPECT_NEAR(counts[2], 3000, 150);
  const uint32_t none[] = {0, 0};
  EXPECT_EQ(random.weighted(none), 2u);
}

}  // namespace
}  // namespace fusebox::fuzz
