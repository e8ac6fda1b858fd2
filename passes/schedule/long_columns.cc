#include "passes/schedule/long_columns.h"

#include <algorithm>
#include <bit>

#include "passes/schedule/known_divisors.h"
#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {
int64_t Columns::blocks() const {
  int64_t blocks = 0;
  if (__builtin_mul_overflow(ceil_div(columns, vector * lanes), beside, &blocks)) return int64_t{1} << 40;
  return std::max<int64_t>(blocks, 1);
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

}  // namespace

SharedColumns share_long_columns(const Columns& columns, bool are_many, int64_t multiprocessors) {
  const SharedColumns narrow = by_narrow_blocks(columns, multiprocessors);
  return narrow.slices > 0 || !are_many ? narrow : by_large_blocks(columns, multiprocessors);
}

}  // namespace fusebox
