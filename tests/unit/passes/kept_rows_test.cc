// How much of a kept row a thread takes: what is stated of rows on an H100, without a fusion.
#include "passes/schedule/kept_rows.h"

#include <gtest/gtest.h>

#include "ir/module/device_properties.h"

namespace fusebox {
namespace {

const DeviceProperties kH100 = *find_device("h100");

int64_t first(const KeptRows& rows) { return elements_of_thread(rows, kH100).at(0); }

TEST(KeptRows, FewRowsTakeOneAccessOfEachThread) {
  EXPECT_EQ(first({.rows = 8, .accesses = 16, .vector = 4, .are_few = true}), 4);
  // The lanes of one warp exchange without barriers.
  EXPECT_EQ(first({.rows = 8, .accesses = 2, .vector = 4, .are_few = true}), 8);
  // Later numbers are for rows of more threads than a block should have.
  const auto all = elements_of_thread({.rows = 64, .accesses = 31, .vector = 1, .are_few = true}, kH100);
  EXPECT_EQ(all, (std::vector<int64_t>{1, 2, 4, 8, 16, 32}));
}

TEST(KeptRows, AnAccessMayBeMoreThanTheElementsOfAThread) {
  // Sixteen elements of one byte, where eight are tried too.
  const KeptRows bytes{.rows = 3, .accesses = 400, .vector = 16, .are_few = true, .has_full_vectors = true};
  EXPECT_EQ(elements_of_thread(bytes, kH100), (std::vector<int64_t>{32}));
}

TEST(KeptRows, RowsThatAreOnTheGpuAtOnceDoTheSame) {
  EXPECT_EQ(first({.rows = 384, .accesses = 3, .vector = 8, .bytes = 2}), 8);
  EXPECT_EQ(first({.rows = 400, .accesses = 28, .vector = 1, .bytes = 4}), 4);
  // 132 multiprocessors have 1024 threads each for them.
  EXPECT_EQ(first({.rows = 132 * 8, .accesses = 4, .vector = 8, .bytes = 2}), 8);
  EXPECT_EQ(first({.rows = 132 * 8 + 1, .accesses = 4, .vector = 8, .bytes = 2}), 16);
}

TEST(KeptRows, NarrowAccessesOfRowsAtOnceAreMore) {
  const KeptRows norm{.rows = 488, .accesses = 90, .vector = 1, .bytes = 2, .stores_rows = true};
  EXPECT_EQ(first(norm), 8);
  EXPECT_EQ(first({.rows = 1664, .accesses = 19, .vector = 1, .bytes = 2, .stores_rows = true}), 16);
  EXPECT_EQ(first({.rows = 16640, .accesses = 19, .vector = 1, .bytes = 2, .stores_rows = true}), 32);
}

TEST(KeptRows, ManyRowsTakeAsManyElementsAsThreadsShouldLoad) {
  EXPECT_EQ(
      first({.rows = 16384, .accesses = 16, .vector = 8, .bytes = 2, .has_full_vectors = true, .stores_rows = true}),
      32);
  EXPECT_EQ(
      first({.rows = 16384, .accesses = 16, .vector = 8, .bytes = 4, .has_full_vectors = true, .stores_rows = true}),
      16);
  EXPECT_EQ(
      first({.rows = 16384, .accesses = 16, .vector = 8, .bytes = 2, .has_moments = true, .has_full_vectors = true}),
      64);
}

TEST(KeptRows, NarrowRowsThatAreOnlyReadTakeFewer) {
  const KeptRows narrow{.rows = 11749, .accesses = 96, .vector = 2, .bytes = 2};
  EXPECT_EQ(first(narrow), 16);
  KeptRows stored = narrow;
  stored.stores_rows = true;
  EXPECT_EQ(first(stored), 32);
  KeptRows wide = narrow;
  wide.bytes = 4;
  EXPECT_EQ(first(wide), 16);  // 64 bytes of a thread
  KeptRows ended = narrow;
  ended.ends_known = true;
  EXPECT_EQ(first(ended), 32);
}

TEST(KeptRows, WeightsOfColumnsCountLessThanRows) {
  KeptRows norm{.rows = 4000, .accesses = 64, .vector = 4, .bytes = 12, .has_full_vectors = true, .stores_rows = true};
  norm.row_bytes = 4;
  EXPECT_EQ(first(norm), 16);
  norm.row_bytes = 12;
  EXPECT_EQ(first(norm), 8);
  KeptRows odd{.rows = 16384, .accesses = 129, .vector = 1, .bytes = 6, .row_bytes = 2, .stores_rows = true};
  EXPECT_EQ(first(odd), 16);
  odd.ends_known = true;
  EXPECT_EQ(first(odd), 32);
}

TEST(KeptRows, ClustersOfManyRowsStateNothingOfThreadsAtOnce) {
  const KeptRows row{
      .rows = 300, .accesses = 2, .vector = 8, .bytes = 2, .cluster = 8, .has_full_vectors = true, .stores_rows = true};
  EXPECT_EQ(elements_of_thread(row, kH100), (std::vector<int64_t>{32, 32}));
}

TEST(KeptRows, NarrowAccessesOfClustersAreMany) {
  KeptRows row{.rows = 300, .accesses = 300, .vector = 1, .bytes = 4, .cluster = 8, .stores_rows = true};
  EXPECT_EQ(elements_of_thread(row, kH100), (std::vector<int64_t>{32, 16}));
  row.loads = 2;
  EXPECT_EQ(elements_of_thread(row, kH100), (std::vector<int64_t>{16, 32}));
}

TEST(KeptRows, ShortRowsThatAreOnlyReadTakeHalfAWarp) {
  const auto of = [](int64_t elements, int64_t vector, int64_t bytes) {
    const ThreadsOfRows t = threads_of_read_rows(elements, vector, elements * bytes, kH100);
    return std::pair(t.lanes, t.threads);
  };
  EXPECT_EQ(of(177, 1, 2), std::pair(int64_t{16}, int64_t{128}));  // 8 rows of 354 bytes
  EXPECT_EQ(of(63, 1, 2), std::pair(int64_t{16}, int64_t{256}));
  EXPECT_EQ(of(602, 2, 2), std::pair(int64_t{32}, int64_t{64}));
  EXPECT_EQ(of(300, 4, 2), std::pair(int64_t{32}, int64_t{128}));
}

}  // namespace
}  // namespace fusebox
