// Barriers between the blocks of a grid, and between launches.
#ifndef FUSEBOX_SYNCHRONIZE_CUH
#define FUSEBOX_SYNCHRONIZE_CUH

#include "types.cuh"

// Programmatic dependent launch: this grid may have begun before the ones in front of it in the stream have ended. Waits until
// they have and their stores can be seen, and then lets the next grid begin, which waits in turn. All of a kernel's loads and
// stores of global memory come after it.
__device__ inline void wait_for_launches_in_front() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A barrier for all threads of a grid that was launched cooperatively, so that all its blocks are resident.
//
// The counter is zero before the first use, and ready for the next barrier after each one: every arrival adds 1, but
// the first block adds what makes the sum 2^31, so that a barrier flips the counter's top bit, whatever came before.
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
