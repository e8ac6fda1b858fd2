#include "passes/schedule/shared_rows.h"

#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {

// As many blocks as there are multiprocessors, about. In CUDA graphs on an H200, in µs by clusters and by blocks that combine
// through global memory, four times as many: sums of [64, 48684] in f32 3.0 and 5.5, of [4, 131072] 2.0 and 3.1, of
// [30, 20001] 2.0 and 4.4, of [16, 131072] in bf16 2.4 and 3.4; moments of [64, 48684] in f16 6.0 and 9.1. Where rows are
// nearly two for each multiprocessor, a block for each is enough: sums of [250, 40000] in f32 took 14.3 µs so, outside of
// graphs, and 15.1 by two that combine through global memory.
SharedRows share_long_rows(const LongRows& r, int64_t multiprocessors) {
  int64_t slices = kBlocksOfCluster;
  while (slices > 2 && r.rows > multiprocessors / slices) slices /= 2;
  const bool fills_gpu_once = r.rows > multiprocessors / 2 && r.rows <= multiprocessors;
  if (fills_gpu_once || r.rows > 3 * multiprocessors / 2) slices = 1;
  const int64_t accesses = ceil_div(r.accesses, slices);  // of a block
  if (accesses > kBytesOfSharedBlock / r.bytes) return {};
  const bool is_small = ceil_div(accesses, kSlicedStripThreads) <= kMostLoadsOfRows;
  const int64_t lanes = is_small ? kSlicedStripThreads : kStripThreads;
  return {slices, lanes, loads_of_round(ceil_div(accesses, lanes), kUnroll, r.bytes)};
}

}  // namespace fusebox
