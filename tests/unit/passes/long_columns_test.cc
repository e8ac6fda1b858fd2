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

// The blocks of columns, as `s` takes them.
int64_t blocks_of(Columns c, const SharedColumns& s) {
  c.lanes = s.lanes;
  c.vector = s.vector;
  return c.blocks();
}

TEST(LongColumns, FormClustersThatFillTheGpu) {
  int formed = 0;
  for (const int64_t columns : {33, 91, 200, 500, 1111, 2000, 3001})
    for (const int64_t bytes : {2, 4, 8}) {
      const Columns c{
          .places = 2000, .columns = columns, .lanes = 16, .vector = columns % 4 == 0 ? 4 : 1, .bytes = bytes};
      const SharedColumns s = share_in_clusters(c, kMultiprocessors);
      if (s.slices == 0) continue;
      ++formed;
      EXPECT_TRUE(s.is_cluster);
      // Of 33 columns in 2 bytes, three groups of 16 bytes are all that there are.
      EXPECT_GE(s.slices * blocks_of(c, s), columns == 33 ? 24 : kMultiprocessors * 2 / 5) << columns << " " << bytes;
      EXPECT_TRUE(s.slices == 2 || s.slices == 4 || s.slices == 8) << columns;
      EXPECT_LE(s.slices * blocks_of(c, s), 2 * kMultiprocessors) << columns << " " << bytes;
      EXPECT_LE(s.vector, c.vector);
      EXPECT_LE(s.threads, 512);
      EXPECT_EQ(s.threads % s.lanes, 0);
      EXPECT_LE(s.unroll * s.vector * bytes, 256);
    }
  EXPECT_GE(formed, 18);
  // A sector of each row, so that there are 12 clusters; whole lines would be 3.
  EXPECT_EQ(share_in_clusters({.places = 2846, .columns = 91, .lanes = 16, .vector = 1, .bytes = 4}, 132).lanes, 8);
  // Narrower accesses of half a warp in place of wider ones of fewer lanes.
  const SharedColumns wide =
      share_in_clusters({.places = 3000, .columns = 500, .lanes = 16, .vector = 4, .bytes = 4}, 132);
  EXPECT_EQ(wide.lanes, 16);
  EXPECT_EQ(wide.vector, 2);
}

TEST(LongColumns, GiveFewColumnsABlockOfEachMultiprocessor) {
  // 128, 64 and 128 bytes of a row: two groups, of which a block reads one.
  for (const Columns& c : {Columns{65536, 32, 1, 16, 4, 4}, {40000, 32, 1, 16, 4, 2}, {65536, 64, 1, 16, 4, 2}}) {
    const SharedColumns s = slice_columns(c, {.warps = 16, .multiprocessors = kMultiprocessors, .has_clusters = true});
    EXPECT_FALSE(s.is_cluster);
    EXPECT_EQ(s.slices * blocks_of(c, s), kMultiprocessors);
    EXPECT_EQ(s.threads, 512);
    EXPECT_EQ(s.unroll, c.places == 40000 ? 8 : 16);
  }
  // Not where all blocks need the sums, nor of moments: there, many small blocks share them.
  const Columns c{65536, 32, 1, 16, 4, 4};
  Slicing waiting{.warps = 16, .multiprocessors = kMultiprocessors, .waits = true, .has_clusters = true};
  Slicing moments{.warps = 16, .multiprocessors = kMultiprocessors, .has_moments = true, .has_clusters = true};
  EXPECT_EQ(slice_columns(c, waiting).threads, 256);
  EXPECT_EQ(slice_columns(c, moments).threads, 256);
}

// Each element that a block reads side by side is exchanged, of moments in three places of 16 bytes for each block, twice.
TEST(LongColumns, LeaveRoomInSharedMemory) {
  int formed = 0;
  for (const int64_t bytes : {1, 2, 3, 4, 8, 16})
    for (const int64_t vector : {1, 2, 4}) {
      const Columns c{.places = 1200, .columns = 1024, .lanes = 16, .vector = vector, .bytes = bytes};
      const SharedColumns s = share_in_clusters(c, kMultiprocessors);
      formed += s.is_cluster;
      EXPECT_LE(s.lanes * s.vector, 64);
    }
  EXPECT_GE(formed, 12);
}

TEST(LongColumns, ServeGpusOfFewMultiprocessors) {
  for (int64_t multiprocessors = 1; multiprocessors < 20; ++multiprocessors)
    for (const int64_t places : {600, 5000, 70000, 1 << 20})
      for (const int64_t columns : {1, 16, 50, 200, 3000})
        for (const bool has_clusters : {false, true}) {
          const Columns c{.places = places, .columns = columns, .lanes = 16, .vector = 2, .bytes = 4};
          const SharedColumns s =
              slice_columns(c, {.warps = 16, .multiprocessors = multiprocessors, .has_clusters = has_clusters});
          EXPECT_GE(s.slices, 1);
          EXPECT_GE(s.threads, s.lanes);
          EXPECT_GE(s.unroll, 1);
        }
}

TEST(LongColumns, FormNoClustersOfManyBytes) {
  // Of parts of sectors, fewer.
  EXPECT_EQ(share_in_clusters({.places = 7296, .columns = 64, .lanes = 16, .vector = 4, .bytes = 2}, 132).slices, 8);
  EXPECT_EQ(share_in_clusters({.places = 33216, .columns = 32, .lanes = 16, .vector = 4, .bytes = 2}, 132).slices, 0);
  EXPECT_EQ(share_in_clusters({.places = 40000, .columns = 130, .lanes = 16, .vector = 2, .bytes = 4}, 132).slices, 0);
  // As many blocks as two for each multiprocessor share nothing.
  EXPECT_EQ(share_in_clusters({.places = 2000, .columns = 9000, .lanes = 16, .vector = 4, .bytes = 4}, 132).slices, 0);
}

TEST(LongColumns, FormClustersWhereTheGpuHasThem) {
  const Columns c{.places = 2846, .columns = 91, .lanes = 16, .vector = 1, .bytes = 4};
  for (const bool waits : {false, true}) {
    Slicing s{.warps = 16, .multiprocessors = kMultiprocessors, .waits = waits, .has_clusters = true};
    EXPECT_TRUE(slice_columns(c, s).is_cluster);
    s.has_clusters = false;
    EXPECT_FALSE(slice_columns(c, s).is_cluster);
    EXPECT_GT(slice_columns(c, s).slices, 8);
  }
}

TEST(LongColumns, TakesSizesThatAreNotKnown) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Columns wide{.places = kMost, .columns = kMost, .beside = kMost, .lanes = 16, .vector = 4, .bytes = 4};
  EXPECT_EQ(wide.blocks(), int64_t{1} << 40);
  EXPECT_EQ(shared(wide).slices, 0);
  EXPECT_EQ(shared({.places = kMost, .columns = 64, .lanes = 16, .vector = 4, .bytes = 4}).slices, 132);
  for (const bool waits : {false, true})
    EXPECT_GE(slice_columns(wide, {.warps = 16, .multiprocessors = 132, .waits = waits, .has_clusters = true}).slices,
              1);
  for (const int64_t places : {int64_t{1}, kMost})
    for (const int64_t columns : {int64_t{1}, kMost})
      for (const int64_t beside : {int64_t{1}, kMost}) {
        const Columns c{.places = places, .columns = columns, .beside = beside, .lanes = 16, .vector = 4, .bytes = 4};
        const SharedColumns s = share_in_clusters(c, kMultiprocessors);
        EXPECT_EQ(s.slices > 0, places == 1 && columns == 1 && beside == 1);
      }
}

}  // namespace
}  // namespace fusebox
