#include "passes/schedule/long_columns.h"

#include <algorithm>
#include <bit>

#include "passes/schedule/known_divisors.h"
#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {
int64_t Columns::blocks() const {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t blocks = 0;
  if (__builtin_mul_overflow(ceil_div(columns, vector * lanes), beside, &blocks)) return kMost;
  return std::clamp<int64_t>(blocks, 1, kMost);
}

namespace {

int64_t power_of_two_to(int64_t n) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); }

// Blocks of a quarter of the threads that a multiprocessor holds: as many as give each multiprocessor one, or a few where one
// would leave a part of them idle. Sums that pass from block to block take longer than a block's own. On an H100, in µs, in
// place of a dozen small blocks for each multiprocessor: 11.5 for [20000, 160] in f32 (17.2), 12.4 for [8192, 512] (17.0),
// 28.5 for [16384, 1024] (31.7), 13.4 for [65536, 64] (18.3).
// A thread adds about as long as 16 bytes take. Where accesses are narrower, one block is not enough: [16384, 4096] in bf16
// took 111 so, and 49 in small blocks; but 13.6 for the one or two rounds of [20000, 160] (15.2).
SharedColumns by_large_blocks(Columns c, int64_t multiprocessors) {
  const int64_t places = kThreadsOfLongColumns / c.lanes * kLongUnroll;  // of each column in a round
  const int64_t most = ceil_div(c.places, places);
  if (c.blocks() > multiprocessors) return {};
  while (c.vector > 1 && c.blocks() * most < multiprocessors * 3 / 4) c.vector /= 2;
  const int64_t blocks = c.blocks();
  const bool is_narrow = c.vector * c.bytes < kVectorBytes;
  int64_t held = is_narrow ? 2 : 1;
  const auto slices = [&] { return std::clamp<int64_t>(held * multiprocessors / blocks, 1, most); };
  if (is_narrow && ceil_div(most, slices()) > 2) return {};
  const auto is_full = [&] { return held * multiprocessors / blocks * blocks * 10 >= held * multiprocessors * 9; };
  while (held < kMostHeldOfColumns && !is_full()) ++held;
  return {c.vector, slices(), c.lanes, kThreadsOfLongColumns, kLongUnroll};
}

// Narrow accesses want four blocks of each multiprocessor that walk many rounds. The threads of a block read half a line
// side by side. So there are many groups of columns, and few blocks share each: the block that comes last adds what the
// others found, which takes longer the more they are. Where they are still many, accesses and lines become half as wide.
// On an H100, in µs, in place of a dozen small blocks for each multiprocessor: 21.4 for [57088, 320] in f16 (25.9), 19.3
// for [30000, 500] in bf16 (24.1), 14.4 for [8192, 1024] (16.5), 12.4 for [60000, 64] (17.1), 10.1 for [9000, 200] in f16
// (12.5), and 19.9 by 2 bytes for [30000, 501] in bf16 (22.2).
SharedColumns by_narrow_blocks(Columns c, int64_t multiprocessors) {
  if (c.vector * c.bytes >= kVectorBytes || c.columns < kFewColumns) return {};
  const bool is_narrowest = c.vector * c.bytes <= kNarrowestBytes;
  c.lanes = std::clamp<int64_t>(power_of_two_to(kBytesOfLine / 2 / (c.vector * c.bytes)), 8, 32);
  const int64_t threads = is_narrowest ? kThreadsOfLongColumns : kThreadsOfColumns;
  const int64_t places = threads / c.lanes * kUnroll;  // of each column in a round
  if (c.places < kManyRounds * places) return {};
  const auto slices = [&] { return kMostHeldOfColumns * multiprocessors / c.blocks(); };
  while (slices() > kManySlices && c.vector > 1 && c.vector * c.bytes > kNarrowBytes) c.vector /= 2;
  if (slices() < kFewSlices) return {};
  return {c.vector, std::min(slices(), c.places / places), c.lanes, threads, kUnroll};
}

// The same columns for blocks that read so many bytes of a row side by side: half a warp does, by vectors of that width.
Columns side_by_side(Columns c, int64_t side) {
  while (c.vector > 1 && side < kLanesSideBySide * c.vector * c.bytes) c.vector /= 2;
  const int64_t most = std::min(2 * kLanesSideBySide, kElementsSideBySide / c.vector);
  c.lanes = std::clamp<int64_t>(power_of_two_to(side / (c.vector * c.bytes)), kLeastLanesSideBySide, most);
  return c;
}

// Few columns: about a block for each multiprocessor, so that the last one has few parts to combine. In CUDA graphs on an
// H200, in µs by 64 blocks for each column (66 are chosen), by clusters and by large blocks: [33216, 32] in f32 4.3, 4.7 and 5.6,
// in bf16 4.1, 5.0 and 5.3; [65536, 32] in f32 4.7 by these, and 7.2 by large blocks.
SharedColumns by_a_block_each(const Columns& all, int64_t multiprocessors) {
  const bool is_part_of_line = all.columns < ceil_div(kBytesOfLine, all.bytes);
  const Columns c = side_by_side(all, is_part_of_line ? kBytesOfSector : kBytesOfLine / 2);
  if (c.blocks() > std::min(kGroupsOfFewColumns, multiprocessors / 2)) return {};
  const int64_t slices = multiprocessors / c.blocks(), places = ceil_div(c.places, slices);
  const int64_t loads = ceil_div(places, kThreadsOfLongColumns / c.lanes);
  if (loads < kLongUnroll || places > kBytesOfFewColumns / (c.lanes * c.vector * c.bytes)) return {};
  return {c.vector, slices, c.lanes, kThreadsOfLongColumns,
          loads > kMostLoadsOfColumns ? 2 * kLongUnroll : kLongUnroll};
}

// Many small blocks, each with a round or two of loads.
SharedColumns by_small_blocks(Columns c, const Slicing& s) {
  const int64_t held = s.waits ? kLeastHeld : kSlicesOfColumn;
  const int64_t most = std::max<int64_t>(held * s.multiprocessors / c.blocks(), 1);
  int64_t warps = s.warps, unroll = kUnroll;
  int64_t slices = std::min(ceil_div(c.places, warps * unroll), most);
  // Blocks with one round of loads for each thread wait for one another's results longer than they load. Larger blocks
  // and longer walks make them fewer: 10.1 µs in place of 12.8 for [2176, 704] in bf16 on an H200.
  if (slices < most) {
    warps = kThreadsOfColumns / c.lanes;
    unroll = kLongUnroll;
    slices = ceil_div(c.places, warps * unroll);
  }
  const bool are_many = slices == most || slices > kManySlices;
  if (!s.waits && !s.has_moments)
    if (const SharedColumns fewer = share_long_columns(c, are_many, s.multiprocessors); fewer.slices > 0) return fewer;
  if (slices < most) {
    const int64_t wanted = (s.waits ? kLeastHeld : 3) * s.multiprocessors;
    while (c.vector > 1 && 2 * c.blocks() * slices < wanted) c.vector /= 2;
  }
  return {c.vector, slices, c.lanes, warps * c.lanes, unroll};
}

}  // namespace

SharedColumns share_long_columns(const Columns& columns, bool are_many, int64_t multiprocessors) {
  const SharedColumns narrow = by_narrow_blocks(columns, multiprocessors);
  return narrow.slices > 0 || !are_many ? narrow : by_large_blocks(columns, multiprocessors);
}

// Blocks of a cluster combine their parts in shared memory. Through global memory the block that comes last waits for the
// others' parts twice: for its counter, and for what they stored. In CUDA graphs on an H200, in µs by clusters and by the
// blocks of slice_columns otherwise: [2846, 91] in f32 2.2 and 3.8, [3000, 500] 3.2 and 4.5, [2500, 2000] 4.9 and 6.8; in bf16
// [7296, 64] 2.4 and 3.7, [2000, 1500] 3.2 and 5.6. But a cluster has 8 blocks at most, which are too few for many bytes of
// narrow rows: [40000, 130] in f32 took 13.6 and 12.4 outside of graphs. Blocks that read a half of a sector side by side are
// twice as many. They transfer it whole, so they pay only for fewer bytes still: [33216, 32] in bf16 is not among them.
SharedColumns share_in_clusters(const Columns& all, int64_t multiprocessors) {
  int64_t side = kBytesOfLine;
  Columns c = side_by_side(all, side);
  while (2 * side > kBytesOfSector && 5 * kBlocksOfCluster * c.blocks() < 2 * multiprocessors)
    c = side_by_side(all, side /= 2);
  int64_t slices = kBlocksOfCluster;
  while (slices > 2 && 2 * slices * c.blocks() > 3 * multiprocessors) slices /= 2;
  const int64_t places = ceil_div(c.places, slices);   // of a block
  const int64_t bytes = c.lanes * c.vector * c.bytes;  // of each place
  const int64_t most_bytes = bytes < kBytesOfSector ? kBytesOfPartOfSectors : kBytesOfSharedBlock;
  if (slices * c.blocks() > 2 * multiprocessors || places > most_bytes / bytes) return {};
  const auto loads = [&](int64_t threads) { return ceil_div(places, threads / c.lanes); };
  const int64_t threads = loads(kThreadsOfColumns) <= kMostLoadsOfColumns ? kThreadsOfColumns : kThreadsOfLongColumns;
  return {c.vector, slices, c.lanes, threads, loads_of_round(loads(threads), kLongUnroll, c.vector * c.bytes), true};
}

SharedColumns slice_columns(const Columns& columns, const Slicing& s) {
  if (s.has_clusters)
    if (const SharedColumns shared = share_in_clusters(columns, s.multiprocessors); shared.slices > 0) return shared;
  if (!s.waits && !s.has_moments)
    if (const SharedColumns shared = by_a_block_each(columns, s.multiprocessors); shared.slices > 0) return shared;
  return by_small_blocks(columns, s);
}

}  // namespace fusebox
