// Reductions across the blocks of a cluster, which run together and reach one another's shared memory.
//
// Every block keeps `parts`: places for the parts of all blocks of its cluster. A block combines the values of its
// threads as block_reduce does, and stores the result in its own place in the memory of every block. When all blocks
// have stored, each reads its own memory and adds up the parts in the order of block numbers. So all blocks have the
// same bits, in every run.
//
// Two things must hold before a block stores to another: that block has begun, and it has read the parts of the exchange
// before. It says so when it arrives: at the start of the kernel, and at the end of each exchange. So an exchange begins
// with a wait, which seldom waits, and the places serve any number of exchanges, also in loops. A kernel ends with a wait
// for the arrival that is left over; no block stores to one that has gone, because it waits for that block's arrival.
//
//   cluster_arrive();                                        // at the start
//   cluster_reduce<Sum, kGridX | kBlockX, 8, 1>(Places<float>{&sum}, Places<float>{parts}, Places<float>{workspace});
//   cluster_wait();                                          // at the end
#ifndef FUSEBOX_CLUSTER_CUH
#define FUSEBOX_CLUSTER_CUH

#include "reduce.cuh"

__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// The same place in the shared memory of the block of that rank in the cluster.
template <class T>
__device__ T* place_in_block(T* place, uint32_t rank) {
  uint64_t there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(reinterpret_cast<uint64_t>(place)), "r"(rank));
  return reinterpret_cast<T*>(there);
}
template <class T>
__device__ Places<T> places_in_block(Places<T> places, uint32_t rank) {
  return {place_in_block(places.data, rank)};
}
template <class T, class N>
__device__ WelfordPlaces<T, N> places_in_block(WelfordPlaces<T, N> places, uint32_t rank) {
  return {place_in_block(places.avg, rank), place_in_block(places.m2, rank), place_in_block(places.n, rank)};
}

// `values` are the thread's own. `parts` has, for each of the cluster's blocks, `count` values for each group of threads.
// `shared` is as for grid_reduce. The grid axis in `threads` has as many blocks as a cluster, so a block's coordinate is
// its rank.
template <class Op, int threads, int blocks, int count, class V, class P, class S>
__device__ __forceinline__ void cluster_reduce(V values, P parts, S shared) {
  constexpr int kUnrolled = count > 0 && count <= 64 ? count : 1;
  constexpr bool kInBlock = (threads & (kBlockX | kBlockY | kBlockZ)) != 0;
  const Group group = block_group<threads>();
  if ((threads & kBlockX) != 0 && blockDim.x % 32 == 0) {
#pragma unroll kUnrolled
    for (int e = 0; e < count; ++e) values.set(e, block_reduce<Op, threads, kAllThreads>(values.get(e), shared));
  } else if constexpr (kInBlock) {
    combine_ranks<Op, threads, count>(values, shared, group, group.size);
  }
  const auto place = [&](uint32_t block, int e) { return (block * count + e) * group.count + group.index; };
  const uint32_t own = grid_group<threads>().rank;
  cluster_wait();
  for (uint32_t block = group.rank; block < blocks; block += group.size) {
    const P there = places_in_block(parts, block);
#pragma unroll kUnrolled
    for (int e = 0; e < count; ++e) there.set(place(own, e), values.get(e));
  }
  cluster_arrive();
  cluster_wait();
#pragma unroll kUnrolled
  for (int e = 0; e < count; ++e) {
    auto value = parts.get(place(0, e));
#pragma unroll
    for (int block = 1; block < blocks; ++block) value = Op::combine(value, parts.get(place(block, e)));
    values.set(e, value);
  }
  cluster_arrive();
}

#endif
