#include "passes/schedule/long_columns.h"

#include <bit>
#include <gtest/gtest.h>
#include <limits>

namespace fusebox {
namespace {

constexpr int64_t kMultiprocessors = 132;

SharedColumns shared(const Columns& c) { return share_long_columns(c, true, kMultiprocessors); }

TEST(LongColumns, GiveEachMultiprocessorABlock) {
  for (const int64_t columns : {64, 160, 512, 1024, 4096}) {
    const Columns c{.places = 65536, .columns = columns, .lanes = 16, .vector = 4, .bytes = 4};
    const SharedColumns s = shared(c);
    EXPECT_EQ(s.vector, 4);
    EXPECT_LE(s.slices * c.blocks(), kMultiprocessors) << columns;
    EXPECT_GE(s.slices * c.blocks() * 10, kMultiprocessors * 9) << columns;
  }
}

TEST(LongColumns, GiveSeveralBlocksWhereOneLeavesManyIdle) {
  const Columns c{.places = 65536, .columns = 3200, .lanes = 16, .vector = 4, .bytes = 4};
  ASSERT_EQ(c.blocks(), 50);
  EXPECT_EQ(shared(c).slices, 5);  // 250 of 264, where 2 would be 100 of 132
}

TEST(LongColumns, LeaveWhatSmallBlocksReadSooner) {
  // Narrow accesses of many rounds, and as many blocks of columns as multiprocessors.
  EXPECT_EQ(shared({.places = 16384, .columns = 4096, .lanes = 16, .vector = 4, .bytes = 2}).slices, 0);
  EXPECT_EQ(shared({.places = 65536, .columns = 64 * 133, .lanes = 16, .vector = 4, .bytes = 4}).slices, 0);
}

TEST(LongColumns, GiveNarrowAccessesFourBlocksOfEachMultiprocessor) {
  for (const int64_t columns : {200, 320, 500, 1024, 2000}) {
    const SharedColumns s = shared({.places = 40000, .columns = columns, .lanes = 16, .vector = 4, .bytes = 2});
    const Columns c{.places = 40000, .columns = columns, .lanes = s.lanes, .vector = s.vector, .bytes = 2};
    EXPECT_EQ(s.threads, 256) << columns;
    EXPECT_LE(s.slices * c.blocks(), 4 * kMultiprocessors) << columns;
    EXPECT_GE(s.slices * c.blocks() * 10, 4 * kMultiprocessors * 9) << columns;
  }
  // Narrower ones leave fewer blocks to share a column.
  EXPECT_EQ(shared({.places = 60000, .columns = 64, .lanes = 16, .vector = 4, .bytes = 2}).vector, 2);
  EXPECT_EQ(shared({.places = 30000, .columns = 501, .lanes = 32, .vector = 1, .bytes = 2}).threads, 512);
  // Of inputs of 2 and 1 bytes, of 4 and 1, and of 4 and 2.
  for (const int64_t bytes : {3, 5, 6}) {
    const SharedColumns mixed = shared({.places = 30000, .columns = 501, .lanes = 16, .vector = 1, .bytes = bytes});
    EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(mixed.lanes))) << bytes;
    EXPECT_EQ(mixed.threads % mixed.lanes, 0) << bytes;
  }
  // Few rounds of small blocks.
  EXPECT_EQ(
      share_long_columns({.places = 2176, .columns = 704, .lanes = 16, .vector = 4, .bytes = 2}, false, 132).slices, 0);
}

TEST(LongColumns, NarrowAccessesWhereBlocksAreFew) {
  const SharedColumns s = shared({.places = 20000, .columns = 64, .lanes = 16, .vector = 4, .bytes = 4});
  EXPECT_EQ(s.vector, 2);
  EXPECT_EQ(s.slices, 79);
}

TEST(LongColumns, TakesSizesThatAreNotKnown) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Columns wide{.places = kMost, .columns = kMost, .beside = kMost, .lanes = 16, .vector = 4, .bytes = 4};
  EXPECT_EQ(wide.blocks(), int64_t{1} << 40);
  EXPECT_EQ(shared(wide).slices, 0);
  EXPECT_EQ(shared({.places = kMost, .columns = 64, .lanes = 16, .vector = 4, .bytes = 4}).slices, 132);
}

}  // namespace
}  // namespace fusebox
