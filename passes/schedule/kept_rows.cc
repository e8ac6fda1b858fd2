#include "passes/schedule/kept_rows.h"

#include <algorithm>
#include <bit>

#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {

int64_t power_of_two_from(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, int64_t{1} << 40))));
}

namespace {

// Those of one access or a few, if all threads fill half of the GPU at most, or if rows are few. Blocks of many warps may
// fill more of it, if they store rows: layer norm of [361, 7488] in bf16 took 10.5 µs by 8 warps on an H100, and 9.4 by 16.
// More accesses, one after another, take longer than the barriers of more warps: softmax of [384, 704] in f16 took 5.5 µs on
// an H100 by three accesses of each lane of a warp, and 4.5 by three warps; rms norm of [64, 963] took 5.9 by eight accesses,
// and 4.5 by two; layer norm of [488, 2863] in f16 took 13.8 on an H200 by 32 accesses of three warps, and 8.0 by eight of twelve.
// But the lanes of one warp exchange without barriers: 1.3 µs for a layer norm of [1, 39], 1.6 by two warps.
std::vector<int64_t> elements_at_once(const KeptRows& r, const DeviceProperties& device) {
  if (r.cluster > 0) return r.are_few ? std::vector<int64_t>{r.vector} : std::vector<int64_t>();
  const int64_t in_warp = power_of_two_from(r.accesses);
  if (r.are_few && in_warp <= 2 && in_warp * r.vector <= kLeastElements) return {in_warp * r.vector};
  std::vector<int64_t> result;
  for (int64_t accesses = 1; accesses <= kUnroll || accesses * r.vector <= kElementsAtOnce; accesses *= 2) {
    // The product of more warps than any block has could wrap.
    const int64_t threads = std::min(ceil_div(r.accesses, accesses), device.block_threads) * device.warp;
    const bool may_fill = threads >= kThreadsOfKeptRows && r.stores_rows;
    const int64_t held = device.multiprocessors * (may_fill ? device.threads * 7 / 8 : device.threads / 2);
    const bool fits = threads <= kThreadsOfFewRows && r.rows <= held / threads;
    if (r.are_few ? accesses <= kUnroll : fits) result.push_back(accesses * r.vector);
  }
  return result;
}

}  // namespace

// Where rows fill the GPU, fewer threads with more elements exchange less. Running moments are combined most cheaply in one
// thread. Rows that are kept as they were loaded leave registers for more loads. Rows of 16 bits an element that are only
// read, by narrow accesses which are all checked, are read soonest by many threads: moments of [11749, 5754] in f16 took
// 98.6 µs by 32 elements of a thread on an H100, and 76.1 by 16. Where only the last accesses are checked, they take 47.5
// by 32, and 54.1 by 16.
std::vector<int64_t> elements_of_thread(const KeptRows& r, const DeviceProperties& device) {
  std::vector<int64_t> result = elements_at_once(r, device);
  if (r.are_few) {
    result.insert(result.end(), {kLeastElements, 16, kManyElements});
    // Rows that are only read wait for their loads alone, so fewer warps with two accesses each exchange sooner: a loss of
    // [27, 7040] in bf16 took 6.8 µs by 28 warps on an H100, and 6.4 by 14.
    const auto has_many_warps = [&](int64_t elements) {
      const int64_t accesses = std::max<int64_t>(elements / r.vector, 1);
      return ceil_div(r.accesses, accesses) >= (accesses == 1 ? 10 : 20);
    };
    if (!r.stores_rows && r.has_full_vectors)
      while (result.size() > 1 && has_many_warps(result.front())) result.erase(result.begin());
    return result;
  }
  if (r.kept_inputs > 0)
    return {std::clamp(power_of_two_from(2 * kBytesOfThread / r.kept_inputs), kLeastElements, 2 * kManyElements),
            kManyElements};
  // An access of one element in a row of several runs divides to find its run, so many threads take a few each: batch norm of
  // [16, 2048, 49] in bf16 took 13.3 µs by 28 elements of a thread on an H200, 9.8 by 16, 9.3 by 8 and 10.2 by 4.
  if (r.cluster == 0 && r.vector == 1 && r.is_in_runs) return {kLeastElements, kManyElements};
  // Narrow accesses are as many bytes under way only if they are more: softmax of [640, 58597] in f32 took 127 µs by clusters
  // of threads with 16 elements each on an H100, and 104 with 32. Of two inputs they are as many with 16: rms norm of
  // [1000, 50001] in bf16 took 169 µs so, and 180 with 32.
  if (r.cluster > 0 && !r.has_full_vectors) {
    if (r.loads > 1) return {kElementsOfNarrow, kManyElements};
    return {kManyElements, kElementsOfNarrow};
  }
  const int64_t most = r.has_moments ? 2 * kManyElements : kManyElements;
  const bool waits = !r.stores_rows && !r.has_full_vectors && r.bytes <= 2 && !r.ends_known;
  // Weights of columns are found in a cache, so they matter less than loads of rows do. By vectors, up to 16 elements.
  const int64_t most_by_rows = r.has_full_vectors || !r.ends_known ? kElementsOfWeights : kManyElements;
  const int64_t by_rows = std::min(kBytesOfThread / r.row_bytes, most_by_rows);
  const int64_t by_bytes = std::max(kBytesOfThread / r.bytes, by_rows);
  const int64_t wanted = waits ? kElementsOfNarrow : (r.has_moments ? 2 : 1) * by_bytes;
  result.insert(result.end(), {std::clamp(power_of_two_from(wanted), kLeastElements, most), kManyElements});
  return result;
}

// Rows that are only read wait for nothing but loads, so small blocks do: moments of [30000, 602] in f16 took 18.7 µs by 256
// threads on an H100, and 17.0 by 64. But a GPU begins about one block in 0.7 ns, and a block should load more than it moves
// in that time: moments of [63488, 177] in bf16 took 24.7 µs by two warps with a row each, and 15.5 by eight. Half a warp
// exchanges in one step less, for twice as many rows: 13.9 by 128 threads.
ThreadsOfRows threads_of_read_rows(int64_t elements, int64_t vector, int64_t bytes, const DeviceProperties& device) {
  ThreadsOfRows t{device.warp, kThreadsOfReadRows};
  if (ceil_div(ceil_div(elements, vector), t.lanes / 2) * vector <= kElementsOfHalfWarp) t.lanes /= 2;
  while (t.threads < kThreadsOfKeptRows && t.threads / t.lanes * bytes < kBytesOfReadBlock) t.threads *= 2;
  return t;
}

}  // namespace fusebox
