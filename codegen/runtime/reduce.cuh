// Reductions and broadcasts across the threads of a block and of a grid. `threads` is a set of coordinates; for each
// combination of the other coordinates, the values of the threads along them are combined, in an order that the
// launch's dimensions alone decide:
// - rank: the threads of a group are numbered by their coordinates in `threads`, x fastest;
// - where x is in `threads` and blockDim.x is a multiple of 32, each warp first combines rank r with r + 16, r + 8 … r
// + 1;
// - the partial values are combined pairwise: for steps of falling powers of two, rank r with r + step;
// - a grid reduces within blocks like this; then thread t of a group combines the values of blocks t, t + threads …
//   pairwise, neighbours first, and the results pairwise as above.
//
// All threads of the block (for grid_reduce: of the grid, launched cooperatively) must call. The result is valid where
// the coordinates in `threads` are 0, and with `all` in every thread. Only another collective may use the workspace again.
//
//   const float total = block_reduce<Sum, kBlockX, kAllThreads>(value, Places<float>{workspace});
#ifndef FUSEBOX_REDUCE_CUH
#define FUSEBOX_REDUCE_CUH

#include "combine.cuh"
#include "synchronize.cuh"

enum Threads { kBlockX = 1, kBlockY = 2, kBlockZ = 4, kGridX = 8, kGridY = 16, kGridZ = 32 };
enum Valid { kFirstThread, kAllThreads };

// A workspace of one element for each thread.
template <class T>
struct Places {
  T* data;

  __device__ T get(int64_t place) const { return data[place]; }
  __device__ void set(int64_t place, T value) const { data[place] = value; }
  __device__ Places from(int64_t place) const { return {data + place}; }
};
template <class T, class N>
struct WelfordPlaces {
  T* avg;
  T* m2;
  N* n;

  __device__ Welford<T, N> get(int64_t place) const { return {avg[place], m2[place], n[place]}; }
  __device__ void set(int64_t place, Welford<T, N> value) const {
    avg[place] = value.avg;
    m2[place] = value.m2;
    n[place] = value.n;
  }
  __device__ WelfordPlaces from(int64_t place) const { return {avg + place, m2 + place, n + place}; }
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
// The value of the warp's first thread.
template <class T>
__device__ T shuffle_first(T value) {
  Words<T> both(value);
  for (int i = 0; i < Words<T>::kCount; ++i) both.words[i] = __shfl_sync(0xffffffffu, both.words[i], 0);
  return both.value;
}

// get(0), get(1) … get(count - 1): neighbours are combined, then what comes of neighbours, until one is left. `sums`
// holds one for each binary digit of how many have been taken.
template <class Op, class T, class Get>
__device__ T combine_pairwise(uint32_t count, Get get) {
  T value = get(0);
  if (count == 1) return value;
  T sums[32];
  int depth = 0;
  for (uint32_t taken = 0;;) {
    for (uint32_t digit = taken; digit & 1; digit >>= 1) value = Op::combine(sums[--depth], value);
    sums[depth++] = value;
    if (++taken == count) break;
    value = get(taken);
  }
  value = sums[--depth];
  while (depth > 0) value = Op::combine(sums[--depth], value);
  return value;
}

// The step of the first pairwise round: the largest power of two below `size`.
__device__ inline uint32_t first_step(uint32_t size) { return size <= 1 ? 0 : 1u << (31 - __clz(size - 1)); }

// block_reduce where x is combined and a warp is 32 neighbours along it. Each warp combines its values, then every warp
// that needs the result reads the values of all warps of its group and combines them in the same order. One warp needs
// no memory and no barrier. The first barrier waits for readers of the workspace's last use.
template <class Op, int threads, Valid valid, class T, class P>
__device__ T warps_reduce(T value, P places, const Group& group) {
  for (uint32_t distance = 16; distance > 0; distance /= 2) value = Op::combine(value, shuffle_down(value, distance));
  const uint32_t lane = group.rank % 32, warps = group.size / 32;
  if (warps > 1) {
    __syncthreads();
    if (lane == 0) places.set(place_of<threads>(group, group.rank / 32), value);
    __syncthreads();
    if (valid == kFirstThread && group.rank >= 32) return value;
    if (lane < warps) value = places.get(place_of<threads>(group, lane));
    for (uint32_t step = first_step(warps); step > 0; step /= 2) {
      const T other = shuffle_down(value, step);
      if (lane < step && lane + step < warps) value = Op::combine(value, other);
    }
  }
  return valid == kAllThreads ? shuffle_first(value) : value;
}

template <class Op, int threads, Valid valid, class T, class P>
__device__ T block_reduce(T value, P places) {
  const Group group = block_group<threads>();
  if ((threads & kBlockX) != 0 && blockDim.x % 32 == 0) return warps_reduce<Op, threads, valid>(value, places, group);
  __syncthreads();
  places.set(place_of<threads>(group, group.rank), value);
  __syncthreads();
  for (uint32_t step = first_step(group.size); step > 0; step /= 2) {
    if (group.rank < step && group.rank + step < group.size) {
      value = Op::combine(value, places.get(place_of<threads>(group, group.rank + step)));
      places.set(place_of<threads>(group, group.rank), value);
    }
    __syncthreads();
  }
  if (valid == kAllThreads) {
    value = places.get(place_of<threads>(group, 0));
    __syncthreads();
  }
  return value;
}

template <class Op, int threads, Valid valid, class T, class P>
__device__ T grid_reduce(T value, P places, uint32_t* counter) {
  const int64_t block_size = int64_t(blockDim.x) * blockDim.y * blockDim.z;
  const Group group = block_group<threads>();
  const Group blocks = grid_group<threads>();
  const P own =
      places.from(block_size * (blockIdx.x + int64_t(gridDim.x) * (blockIdx.y + int64_t(gridDim.y) * blockIdx.z)));
  // The block's value stands in the place of rank 0, which nobody writes until the last barrier. Only the warp of rank
  // 0 reads places there.
  value = block_reduce<Op, threads, kFirstThread>(value, own);
  __syncwarp();
  if (group.rank == 0) own.set(place_of<threads>(group, 0), value);
  grid_barrier(counter);
  if (valid == kAllThreads || blocks.rank == 0) {
    const uint32_t size = group.size < blocks.size ? group.size : blocks.size;
    if (group.rank < blocks.size)
      value = combine_pairwise<Op, T>((blocks.size - group.rank + group.size - 1) / group.size, [&](uint32_t i) {
        const uint32_t other = group.rank + i * group.size;
        return places.get(block_of_rank<threads>(other) * block_size + place_of<threads>(group, 0));
      });
    if (group.rank > 0 && group.rank < size) own.set(place_of<threads>(group, group.rank), value);
    __syncthreads();
    for (uint32_t step = first_step(size); step > 0; step /= 2) {
      if (group.rank < step && group.rank + step < size) {
        value = Op::combine(value, own.get(place_of<threads>(group, group.rank + step)));
        if (group.rank > 0) own.set(place_of<threads>(group, group.rank), value);
      }
      __syncthreads();
    }
    if (valid == kAllThreads && group.size > 1) {
      if (group.rank == 0) own.set(place_of<threads>(group, 1), value);
      __syncthreads();
      value = own.get(place_of<threads>(group, 1));
    }
  }
  grid_barrier(counter);
  return value;
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
