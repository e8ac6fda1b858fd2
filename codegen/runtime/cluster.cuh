// Reductions across the blocks of a cluster, which run together and reach one another's shared memory.
//
// Every block keeps `parts`: places for the parts of all blocks of its cluster, twice. A block combines the values of its
// threads as block_reduce does, and stores the result in its own place in the memory of every block. When the parts of all
// blocks have come, each reads its own memory and adds them up in the order of block numbers. So all blocks have the same
// bits, in every run.
//
// The stores are asynchronous: each reports its bytes to a barrier (mbarrier) in the memory that it stores to, and the
// threads there wait until all bytes have come. So no thread waits for its own stores, as it would at a barrier of the
// cluster that publishes them: that costs a fence for the whole GPU.
//
// Exchanges use the two sets of places, each with a barrier, in turn. A block stores a part of exchange k when it has the
// parts of k - 1 from all blocks. These were stored after all threads there had read the parts of k - 2, which lie where
// those of k go: a thread stores after a barrier of its block, or of its warp if a group of threads is one warp. A group of
// one thread reads what it has waited for itself. Nor does a block end before the last part for it has come.
//
//   Cluster cluster;
//   cluster.arrive();                                        // at the start: its barriers are ready for other blocks
//   cluster.reduce<Sum, kGridX | kBlockX, 8, 1>(Places<float>{&sum}, Places<float>{parts}, 8, Places<float>{workspace});
//   cluster.wait();                                          // at the end
#ifndef FUSEBOX_CLUSTER_CUH
#define FUSEBOX_CLUSTER_CUH

#include "reduce.cuh"

__device__ inline uint32_t shared_address(const void* place) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}
// The same place in the shared memory of the block of that rank in the cluster.
__device__ inline uint32_t address_in_block(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

// Stores a value in another block and reports its bytes to the barrier there.
template <class T>
__device__ __forceinline__ void store_in_block(T* place, T value, uint32_t barrier, uint32_t rank) {
  const uint32_t there = address_in_block(shared_address(place), rank);
  const uint32_t barrier_there = address_in_block(barrier, rank);
  const Words<T> both(value);
  if constexpr (sizeof(T) % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Words<T>::kCount; ++i)
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there + 4 * i),
          "r"(both.words[i]), "r"(barrier_there)
          : "memory");
  } else {  // asynchronous stores have 4 bytes at least
    if constexpr (sizeof(T) == 2)
      asm volatile("st.shared::cluster.b16 [%0], %1;" ::"r"(there), "h"(uint16_t(both.words[0])) : "memory");
    else
      asm volatile("st.shared::cluster.b8 [%0], %1;" ::"r"(there), "r"(both.words[0]) : "memory");
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(barrier_there),
                 "r"(uint32_t(sizeof(T)))
                 : "memory");
  }
}
template <class T>
__device__ __forceinline__ void store_in_block(Places<T> places, uint32_t place, T value, uint32_t barrier,
                                               uint32_t rank) {
  store_in_block(places.data + place, value, barrier, rank);
}
template <class T, class N>
__device__ __forceinline__ void store_in_block(WelfordPlaces<T, N> places, uint32_t place, Welford<T, N> value,
                                               uint32_t barrier, uint32_t rank) {
  store_in_block(places.avg + place, value.avg, barrier, rank);
  store_in_block(places.m2 + place, value.m2, barrier, rank);
  store_in_block(places.n + place, value.n, barrier, rank);
}

class Cluster {
 public:
  // Says that other blocks may store to this block. The same for all threads, as everything here.
  __device__ void arrive() {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
      for (uint32_t set = 0; set < 2; ++set)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier(set)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  }

  // Waits until all blocks have arrived, once.
  __device__ void wait() {
    if (!has_begun_) asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    has_begun_ = true;
  }

  // `values` are the thread's own. `parts` has, twice, for each of the cluster's blocks, `count` values for each group of
  // threads; the second set begins `second` bytes behind the first. `shared` is as for grid_reduce. The grid axis in
  // `threads` has as many blocks as a cluster, so a block's coordinate is its rank.
  template <class Op, int threads, int blocks, int count, class V, class P, class S>
  __device__ __forceinline__ void reduce(V values, P parts, uint32_t second, S shared) {
    constexpr int kUnrolled = count > 0 && count <= 64 ? count : 1;
    constexpr bool kInBlock = (threads & (kBlockX | kBlockY | kBlockZ)) != 0;
    const Group group = block_group<threads>();
    if ((threads & kBlockX) != 0 && blockDim.x % 32 == 0) {
#pragma unroll kUnrolled
      for (int e = 0; e < count; ++e) values.set(e, block_reduce<Op, threads, kAllThreads>(values.get(e), shared));
      __syncwarp();
    } else if constexpr (kInBlock) {
      combine_ranks<Op, threads, count>(values, shared, group, group.size);
    }
    const auto place = [&](uint32_t block, int e) { return (block * count + e) * group.count + group.index; };
    const uint32_t own = grid_group<threads>().rank, set = exchanges_ % 2, parity = exchanges_ / 2 % 2;
    ++exchanges_;
    const P of_set = parts.behind(set * second);
    const uint32_t come = barrier(set);
    wait();
    if (group.rank == 0 && group.index == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(come),
                   "r"(uint32_t(blocks * count * P::kBytesOfAll) * group.count)
                   : "memory");
    for (uint32_t block = group.rank; block < blocks; block += group.size) {
#pragma unroll kUnrolled
      for (int e = 0; e < count; ++e) store_in_block(of_set, place(own, e), values.get(e), come, block);
    }
    wait_for(come, parity);
#pragma unroll kUnrolled
    for (int e = 0; e < count; ++e) {
      auto value = of_set.get(place(0, e));
#pragma unroll
      for (int block = 1; block < blocks; ++block) value = Op::combine(value, of_set.get(place(block, e)));
      values.set(e, value);
    }
  }

 private:
  __device__ static uint32_t barrier(uint32_t set) {
    __shared__ uint64_t barriers[2];
    return shared_address(&barriers[set]);
  }

  __device__ static void wait_for(uint32_t barrier, uint32_t parity) {
    uint32_t is_done = 0;
    while (!is_done)
      asm volatile(
          "{\n"
          ".reg .pred p;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n"
          "}\n"
          : "=r"(is_done)
          : "r"(barrier), "r"(parity)
          : "memory");
  }

  uint32_t exchanges_ = 0;
  bool has_begun_ = false;
};

#endif
