#include "passes/schedule/shared_rows.h"

#include <gtest/gtest.h>
#include <limits>

namespace fusebox {
namespace {

constexpr int64_t kMultiprocessors = 132;

SharedRows shared(const LongRows& r) { return share_long_rows(r, kMultiprocessors); }

TEST(SharedRows, HaveAboutABlockForEachMultiprocessor) {
  for (int64_t rows = 1; rows < 2 * kMultiprocessors; ++rows) {
    const SharedRows s = shared({.rows = rows, .accesses = 9000, .bytes = 16});
    EXPECT_TRUE(s.slices == 1 || s.slices == 2 || s.slices == 4 || s.slices == 8) << rows;
    if (s.slices > 2) {
      EXPECT_LE(rows * s.slices, kMultiprocessors) << rows;
    }
    if (s.slices < 8 && rows <= kMultiprocessors) {
      EXPECT_GT(2 * rows * s.slices, kMultiprocessors) << rows;
    }
  }
  // One block of a few multiprocessors would have two rows, and the others one.
  EXPECT_EQ(shared({.rows = 140, .accesses = 9000, .bytes = 16}).slices, 2);
  EXPECT_EQ(shared({.rows = 250, .accesses = 9000, .bytes = 16}).slices, 1);
}

TEST(SharedRows, TakeFewRounds) {
  EXPECT_EQ(shared({.rows = 64, .accesses = 12171, .bytes = 16}).unroll, 4);  // three rounds, as 12 of each thread
  EXPECT_EQ(shared({.rows = 4, .accesses = 32768, .bytes = 16}).unroll, 8);   // one
  EXPECT_EQ(shared({.rows = 16, .accesses = 16384, .bytes = 16}).lanes, 256);
  EXPECT_EQ(shared({.rows = 4, .accesses = 32768, .bytes = 64}).slices, 0);
  EXPECT_EQ(shared({.rows = 4, .accesses = 16384, .bytes = 64}).unroll, 4);
}

TEST(SharedRows, TakeSizesThatAreNotKnown) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(shared({.rows = kMost, .accesses = 9000, .bytes = 16}).slices, 1);
  EXPECT_EQ(shared({.rows = 1, .accesses = kMost, .bytes = 16}).slices, 0);
  EXPECT_EQ(shared({.rows = kMost, .accesses = kMost, .bytes = 16}).slices, 0);
}

}  // namespace
}  // namespace fusebox
