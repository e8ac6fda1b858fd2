// Reductions and broadcasts across the threads of a block and of a grid. `threads` is a set of coordinates; for each
// combination of the other coordinates, the values of the threads along them are combined, in an order that the
// launch's dimensions alone decide:
// - rank: the threads of a group are numbered by their coordinates in `threads`, x fastest;
// - where x is in `threads` and blockDim.x is a multiple of 32, each warp first combines rank r with r + 16, r + 8 … r
// + 1;
// - the partial values are combined pairwise: for steps of falling powers of two, rank r with r + step;
// - a grid reduces within blocks like this. Then the blocks of a group, numbered like threads, combine their parts in a
//   tree of 16 × t branches, t the number of threads that reduced a part: thread r of a branch adds up the parts r, r +
//   t …, one after another, and the sums of the threads are combined pairwise as above.
//
// All threads of the block must call. The result of block_reduce is valid where the coordinates in `threads` are 0, and
// with kAllThreads in every thread. Only another collective may use the workspace again.
//
// grid_reduce combines `count` values of each thread at once. At each node of the tree, the block that comes last
// combines the parts, in the order of block numbers; so the bits are the same in every run, and no block waits. It
// returns whether this block has the results, in all of its threads: the block that came last at the root has, and with
// kAllBlocks, which needs a cooperative launch, every block, behind a barrier of the grid.
//
//   const float total = block_reduce<Sum, kBlockX, kAllThreads>(value, Places<float>{workspace});
//   float sums[4] = …;
//   if (grid_reduce<Sum, kGridX, kLastBlock, 4>(Places<float>{sums}, Places<float>{parts}, {}, arrivals, 0, nullptr))
#ifndef FUSEBOX_REDUCE_CUH
#define FUSEBOX_REDUCE_CUH

#include "combine.cuh"
#include "synchronize.cuh"

enum Threads { kBlockX = 1, kBlockY = 2, kBlockZ = 4, kGridX = 8, kGridY = 16, kGridZ = 32 };
enum Valid { kFirstThread, kAllThreads };
enum Holder { kLastBlock, kAllBlocks };

template <class T>
__device__ T* behind_bytes(T* place, int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(place) + bytes);
}

// A workspace of one element for each thread.
template <class T>
struct Places {
  static constexpr int kBytes = sizeof(T), kBytesOfAll = sizeof(T);
  T* data;

  __device__ T get(int64_t place) const { return data[place]; }
  __device__ void set(int64_t place, T value) const { data[place] = value; }
  __device__ Places behind(int64_t bytes) const { return {behind_bytes(data, bytes)}; }
};
template <class T, class N>
struct WelfordPlaces {
  static constexpr int kBytes = sizeof(T) < sizeof(N) ? sizeof(N) : sizeof(T);  // of the widest member
  static constexpr int kBytesOfAll = 2 * sizeof(T) + sizeof(N);
  T* avg;
  T* m2;
  N* n;

  __device__ Welford<T, N> get(int64_t place) const { return {avg[place], m2[place], n[place]}; }
  __device__ void set(int64_t place, Welford<T, N> value) const {
    avg[place] = value.avg;
    m2[place] = value.m2;
    n[place] = value.n;
  }
  __device__ WelfordPlaces behind(int64_t bytes) const {
    return {behind_bytes(avg, bytes), behind_bytes(m2, bytes), behind_bytes(n, bytes)};
  }
};

// The threads (or blocks) that are combined with this one: its rank among them, how many they are, and which group of
// how many.
struct Group {
  uint32_t rank = 0, size = 1, index = 0, count = 1;

  __device__ void add(bool combined, uint32_t coordinate, uint32_t extent) {
    if (combined) {
      rank += coordinate * size;
      size *= extent;
    } else {
      index += coordinate * count;
      count *= extent;
    }
  }
};
template <int threads>
__device__ Group block_group() {
  Group group;
  group.add(threads & kBlockX, threadIdx.x, blockDim.x);
  group.add(threads & kBlockY, threadIdx.y, blockDim.y);
  group.add(threads & kBlockZ, threadIdx.z, blockDim.z);
  return group;
}
template <int threads>
__device__ Group grid_group() {
  Group group;
  group.add(threads & kGridX, blockIdx.x, gridDim.x);
  group.add(threads & kGridY, blockIdx.y, gridDim.y);
  group.add(threads & kGridZ, blockIdx.z, gridDim.z);
  return group;
}
// The linear number of the block of that rank in this block's group.
template <int threads>
__device__ int64_t block_of_rank(uint32_t rank) {
  uint32_t x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
  if constexpr ((threads & kGridX) != 0) {
    x = rank % gridDim.x;
    rank /= gridDim.x;
  }
  if constexpr ((threads & kGridY) != 0) {
    y = rank % gridDim.y;
    rank /= gridDim.y;
  }
  if constexpr ((threads & kGridZ) != 0) z = rank;
  return x + int64_t(gridDim.x) * (y + int64_t(gridDim.y) * z);
}
// Where a group keeps the value of a rank: neighbouring threads use neighbouring places.
template <int threads>
__device__ uint32_t place_of(const Group& group, uint32_t rank) {
  return (threads & kBlockX) != 0 ? group.index * group.size + rank : rank * group.count + group.index;
}

// A value as 32-bit words, which is what a warp exchanges.
template <class T>
union Words {
  static constexpr int kCount = (sizeof(T) + 3) / 4;
  uint32_t words[kCount];
  T value;
  __device__ explicit Words(T v) : words{} { value = v; }
};
template <class T>
__device__ T shuffle_down(T value, uint32_t distance) {
  Words<T> both(value);
  for (int i = 0; i < Words<T>::kCount; ++i) both.words[i] = __shfl_down_sync(0xffffffffu, both.words[i], distance);
  return both.value;
}
// The value of the first of each `width` neighbouring lanes.
template <int width = 32, class T>
__device__ T shuffle_first(T value) {
  Words<T> both(value);
  for (int i = 0; i < Words<T>::kCount; ++i) both.words[i] = __shfl_sync(0xffffffffu, both.words[i], 0, width);
  return both.value;
}

// The step of the first pairwise round: the largest power of two below `size`.
__device__ inline uint32_t first_step(uint32_t size) { return size <= 1 ? 0 : 1u << (31 - __clz(size - 1)); }

template <class Op, class T>
__device__ T combine_warp(T value) {
#pragma unroll
  for (uint32_t distance = 16; distance > 0; distance /= 2) value = Op::combine(value, shuffle_down(value, distance));
  return value;
}
// Combines the values of the first `warps` lanes; lane 0 gets the result. In a round of `step`, the lanes from `step` on
// combine what nobody reads, and where `step` is not below `warps` no lane combines anything.
template <class Op, class T>
__device__ T combine_lanes(T value, uint32_t lane, uint32_t warps) {
#pragma unroll
  for (uint32_t step = 16; step > 0; step /= 2) {
    const T other = shuffle_down(value, step);
    if (lane + step < warps) value = Op::combine(value, other);
  }
  return value;
}

// block_reduce where x is combined and a warp is 32 neighbours along it, for one value of a thread or several, each with
// its op. Each warp combines its values, then every warp that needs the results reads the values of all warps of its group
// and combines them in the same order. One warp needs no memory and no barrier. The first barrier waits for readers of
// the workspace's last use. A group has a place for each thread, so there is room for 32 values of each warp.
template <int threads, Valid valid, class... Ops, class T, class P>
__device__ __forceinline__ void warps_reduce(T* values, P places, const Group& group) {
  static_assert(sizeof...(Ops) <= 32, "a group has 32 places for each warp");
  int i = 0;
  ((values[i] = combine_warp<Ops>(values[i]), ++i), ...);
  const uint32_t lane = group.rank % 32, warps = group.size / 32;
  if (warps > 1) {
    __syncthreads();
    if (lane == 0) {
#pragma unroll
      for (int k = 0; k < int(sizeof...(Ops)); ++k)
        places.set(place_of<threads>(group, k * warps + group.rank / 32), values[k]);
    }
    __syncthreads();
    if (valid == kFirstThread && group.rank >= 32) return;
    if (lane < warps) {
#pragma unroll
      for (int k = 0; k < int(sizeof...(Ops)); ++k) values[k] = places.get(place_of<threads>(group, k * warps + lane));
    }
    i = 0;
    ((values[i] = combine_lanes<Ops>(values[i], lane, warps), ++i), ...);
  }
  if (valid == kAllThreads) {
#pragma unroll
    for (int k = 0; k < int(sizeof...(Ops)); ++k) values[k] = shuffle_first(values[k]);
  }
}

// Combines the values of each group of `width` neighbouring lanes in the order of block_reduce, without memory and
// without a barrier. Every lane gets the result of its group. All lanes of the warp must exist and call. A lane of a
// higher rank combines what other groups have meanwhile, and nobody reads it.
//
//   warp_reduce<Sum, 8>(value)   with blockDim.x == 8: four rows in each warp
template <class Op, int width, class T>
__device__ T warp_reduce(T value) {
#pragma unroll
  for (int distance = width / 2; distance > 0; distance /= 2) value = Op::combine(value, shuffle_down(value, distance));
  return shuffle_first<width>(value);
}

// The last step of the rounds in memory: that which leaves the values of four warps, or 1 where lanes exchange nothing by
// shuffles. They do where a warp holds whole rows of the block and the ranks number the rows: a thread's place is then its
// linear number, neighbouring ranks are `group.count` lanes apart, and all warps are full.
template <int threads>
__device__ uint32_t last_step_in_memory(const Group& group) {
  if ((threads & kBlockX) != 0 || ((threads & kBlockZ) == 0 && blockDim.z != 1)) return 1;
  const bool fills_warps =
      group.count <= 32 && (group.count & (group.count - 1)) == 0 && group.size * group.count % 32 == 0;
  return fills_warps ? 128u >> (31 - __clz(group.count)) : 1;
}
// The last rounds of block_reduce in the first warp, where lanes exchange by shuffles. The lanes have the values of the
// first places, and up to three more warps have theirs in memory. The first `count` lanes get the results of the groups.
// Other lanes combine what nobody reads.
template <class Op, class T, class P>
__device__ __forceinline__ T combine_last_ranks(T value, P places, uint32_t lane, uint32_t count, uint32_t all) {
  if (all > 64) value = Op::combine(value, places.get(lane + 64));
  if (all > 32) {
    T other = places.get(lane + 32);
    if (all > 96) other = Op::combine(other, places.get(lane + 96));
    value = Op::combine(value, other);
  }
#pragma unroll 1
  for (uint32_t distance = 16; distance >= count; distance /= 2)
    value = Op::combine(value, shuffle_down(value, distance));
  return value;
}

// block_reduce in rounds, where no warps are combined. The first barrier waits for readers of the workspace's last use. So
// nothing waits for those of the results.
template <class Op, int threads, Valid valid, class T, class P>
__device__ T rounds_reduce(T value, P places, const Group& group) {
  const uint32_t last_step = last_step_in_memory<threads>(group);
  const uint32_t own = place_of<threads>(group, group.rank), all = group.size * group.count;
  __syncthreads();
  places.set(own, value);
  __syncthreads();
  for (uint32_t step = first_step(group.size); step >= last_step; step /= 2) {
    if (group.rank < step && group.rank + step < group.size) {
      value = Op::combine(value, places.get(place_of<threads>(group, group.rank + step)));
      places.set(own, value);
    }
    __syncthreads();
  }
  if (last_step > 1) {
    if (own < 32) {
      value = combine_last_ranks<Op>(value, places, own, group.count, all);
      if (valid == kAllThreads && own < group.count) places.set(own, value);
    }
    if (valid == kAllThreads) __syncthreads();
  }
  if (valid == kAllThreads) value = places.get(place_of<threads>(group, 0));
  return value;
}

template <class Op, int threads, Valid valid, class T, class P>
__device__ T block_reduce(T value, P places) {
  const Group group = block_group<threads>();
  if ((threads & kBlockX) != 0 && blockDim.x % 32 == 0) {
    warps_reduce<threads, valid, Op>(&value, places, group);
    return value;
  }
  return rounds_reduce<Op, threads, valid>(value, places, group);
}

// Several values of a thread as one, each with its op and its places: behind those of the values before it.
template <class T, int count>
struct Several {
  T values[count];
};
template <class... Ops>
struct Each {
  template <class T>
  __device__ static T combine(T a, T b) {
    int i = 0;
    ((a.values[i] = Ops::combine(a.values[i], b.values[i]), ++i), ...);
    return a;
  }
};
template <class T, int count, class P>
struct SeveralPlaces {
  P places;
  int64_t threads;

  __device__ Several<T, count> get(int64_t place) const {
    Several<T, count> several;
#pragma unroll
    for (int k = 0; k < count; ++k) several.values[k] = places.get(k * threads + place);
    return several;
  }
  __device__ void set(int64_t place, const Several<T, count>& several) const {
#pragma unroll
    for (int k = 0; k < count; ++k) places.set(k * threads + place, several.values[k]);
  }
};

// block_reduce of several values of each thread, each with its op, in one exchange: where warps are combined, and where
// the workspace has `at_once` places for each thread and there are no more values. The results take the places of the
// values, and have the bits that calls one after another give.
//
//   float values[2] = {largest, sum};
//   block_reduce_all<kBlockX, kAllThreads, 1, Max, Sum>(values, Places<float>{workspace});
template <int threads, Valid valid, int at_once, class... Ops, class T, class P>
__device__ void block_reduce_all(T (&values)[sizeof...(Ops)], P places) {
  constexpr int kCount = sizeof...(Ops);
  const Group group = block_group<threads>();
  if ((threads & kBlockX) != 0 && blockDim.x % 32 == 0) return warps_reduce<threads, valid, Ops...>(values, places, group);
  if constexpr (kCount <= at_once) {
    Several<T, kCount> several;
#pragma unroll
    for (int k = 0; k < kCount; ++k) several.values[k] = values[k];
    several = rounds_reduce<Each<Ops...>, threads, valid>(
        several, SeveralPlaces<T, kCount, P>{places, int64_t(group.size) * group.count}, group);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[k] = several.values[k];
  } else {
    int i = 0;
    ((values[i] = rounds_reduce<Ops, threads, valid>(values[i], places, group), ++i), ...);
  }
}

// Combines the values of the threads of ranks below `size`, and gives the results to all threads of the group. As many
// values of a thread at once as 16 bytes hold: `shared` has 16 bytes for each thread.
template <class Op, int threads, int count, class V, class S>
__device__ __forceinline__ void combine_ranks(V values, S shared, const Group& group, uint32_t size) {
  constexpr int kAtOnce = S::kBytes >= 16 ? 1 : 16 / S::kBytes;
  // A thread may hold no value. The compiler refuses to unroll a loop 0 times.
  constexpr int kUnrolled = count > 0 && count <= 64 ? (count + kAtOnce - 1) / kAtOnce : 1;
  const uint32_t all = group.size * group.count, own = place_of<threads>(group, group.rank);
#pragma unroll kUnrolled
  for (int first = 0; first < count; first += kAtOnce) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (first + k < count && group.rank < size) shared.set(k * all + own, values.get(first + k));
    __syncthreads();
    for (uint32_t step = first_step(size); step > 0; step /= 2) {
      if (group.rank < step && group.rank + step < size) {
        const uint32_t other = place_of<threads>(group, group.rank + step);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
          if (first + k < count)
            shared.set(k * all + own, Op::combine(shared.get(k * all + own), shared.get(k * all + other)));
      }
      __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (first + k < count) values.set(first + k, shared.get(k * all + place_of<threads>(group, 0)));
  }
}

// Whether this block is the last of `count` that come to the counter, which is 0 before the first and after the last.
// What the other blocks stored before they came is visible then.
__device__ inline bool comes_last(uint32_t* counter, uint32_t count) {
  int is_last = 0;
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    // Releases what this block stored and acquires what others released, in one access. Two fences would wait twice.
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(count - 1) : "memory");
    is_last = before == count - 1;
  }
  return __syncthreads_or(is_last) != 0;
}

// `values` are the thread's own. `parts` has, for each block and with kAllBlocks for each group of blocks, `count`
// values for each group of threads. `shared` has 16 bytes for each thread, if threads of a block are combined. The
// arrivals of slot s begin at s times the number of blocks.
template <class Op, int threads, Holder holder, int count, class V, class P, class S>
__device__ __forceinline__ bool grid_reduce(V values, P parts, S shared, uint32_t* arrivals, int slot,
                                            uint32_t* barrier) {
  constexpr int kUnrolled = count > 0 && count <= 64 ? count : 1;
  constexpr int kAtOnce = count >= 16 ? 1 : count >= 8 ? 2 : count >= 4 ? 4 : 8;  // parts, each of `count` values
  constexpr bool kInBlock = (threads & (kBlockX | kBlockY | kBlockZ)) != 0;
  const Group group = block_group<threads>();
  const Group blocks = grid_group<threads>();
  const int64_t all_blocks = int64_t(gridDim.x) * gridDim.y * gridDim.z;
  const uint32_t branches = 16 * group.size;
  const auto place = [&](int64_t block, int e) { return (block * count + e) * group.count + group.index; };
  if ((threads & kBlockX) != 0 && blockDim.x % 32 == 0) {
#pragma unroll kUnrolled
    for (int e = 0; e < count; ++e) values.set(e, block_reduce<Op, threads, kAllThreads>(values.get(e), shared));
  } else if constexpr (kInBlock) {
    combine_ranks<Op, threads, count>(values, shared, group, group.size);
  }
  // The block of rank `first` keeps the part of a node that begins with it.
  uint32_t first = blocks.rank, step = 1;
  uint32_t* counter = arrivals + slot * all_blocks + int64_t(blocks.index) * blocks.size;
  bool is_last = true;
  for (uint32_t nodes = blocks.size; nodes > 1 && is_last; nodes = (nodes + branches - 1) / branches) {
    if (group.rank == 0) {
      const int64_t own = block_of_rank<threads>(first);
#pragma unroll kUnrolled
      for (int e = 0; e < count; ++e) parts.set(place(own, e), values.get(e));
    }
    const uint32_t node = first / step / branches;
    const uint32_t size = nodes - node * branches < branches ? nodes - node * branches : branches;
    is_last = comes_last(counter + node, size);
    if (is_last) {
      first = node * branches * step;
      const auto part = [&](uint32_t i, int e) {
        return parts.get(place(block_of_rank<threads>(first + i * step), e));
      };
      if (group.rank < size) {
#pragma unroll kUnrolled
        for (int e = 0; e < count; ++e) values.set(e, part(group.rank, e));
#pragma unroll kAtOnce
        for (uint32_t i = group.rank + group.size; i < size; i += group.size) {
#pragma unroll kUnrolled
          for (int e = 0; e < count; ++e) values.set(e, Op::combine(values.get(e), part(i, e)));
        }
      }
      if constexpr (kInBlock)
        combine_ranks<Op, threads, count>(values, shared, group, size < group.size ? size : group.size);
    }
    counter += (nodes + branches - 1) / branches;
    step *= branches;
  }
  if constexpr (holder == kAllBlocks) {
    const int64_t result = all_blocks + blocks.index;
    if (is_last && group.rank == 0) {
#pragma unroll kUnrolled
      for (int e = 0; e < count; ++e) parts.set(place(result, e), values.get(e));
    }
    grid_barrier(barrier);
#pragma unroll kUnrolled
    for (int e = 0; e < count; ++e) values.set(e, parts.get(place(result, e)));
    return true;
  }
  return is_last;
}

// The value of the thread whose coordinates in `threads` are 0, to all threads along them.
template <int threads, class T>
__device__ T block_broadcast(T value, T* workspace) {
  const Group group = block_group<threads>();
  __syncthreads();
  if (group.rank == 0) workspace[group.index] = value;
  __syncthreads();
  value = workspace[group.index];
  __syncthreads();
  return value;
}

#endif
