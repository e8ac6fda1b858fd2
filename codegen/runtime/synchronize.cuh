// A barrier for all threads of a grid that was launched cooperatively, so that all its blocks are resident.
//
// The counter is zero before the first use, and ready for the next barrier after each one: every arrival adds 1, but
// the first block adds what makes the sum 2^31, so that a barrier flips the counter's top bit, whatever came before.
#ifndef FUSEBOX_SYNCHRONIZE_CUH
#define FUSEBOX_SYNCHRONIZE_CUH

#include "types.cuh"

__device__ inline void grid_barrier(uint32_t* counter) {
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    const uint32_t blocks = gridDim.x * gridDim.y * gridDim.z;
    const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
    __threadfence();
    const uint32_t before = atomicAdd(counter, first ? 0x80000000u - (blocks - 1u) : 1u);
    while (((before ^ *reinterpret_cast<volatile uint32_t*>(counter)) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

#endif
