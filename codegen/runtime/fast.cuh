// The hardware's approximations, for ops that a program calls `fast`. They are of float alone. Operands and results that
// are subnormal may count as zero. replay/aten/fast_table.inc has the largest errors.
//
//   fast::exp(1.0f) is within 3 units in the last place of 2.7182818f
#ifndef FUSEBOX_FAST_CUH
#define FUSEBOX_FAST_CUH

#include "types.cuh"

namespace fast {

#define FUSEBOX_APPROXIMATION(name, instruction)         \
  __device__ __forceinline__ float name(float x) {       \
    float result;                                        \
    asm(instruction " %0, %1;" : "=f"(result) : "f"(x)); \
    return result;                                       \
  }
FUSEBOX_APPROXIMATION(cos, "cos.approx.ftz.f32")
FUSEBOX_APPROXIMATION(exp2, "ex2.approx.ftz.f32")
FUSEBOX_APPROXIMATION(log2, "lg2.approx.ftz.f32")
FUSEBOX_APPROXIMATION(reciprocal, "rcp.approx.ftz.f32")
FUSEBOX_APPROXIMATION(rsqrt, "rsqrt.approx.ftz.f32")
FUSEBOX_APPROXIMATION(sin, "sin.approx.ftz.f32")
FUSEBOX_APPROXIMATION(sqrt, "sqrt.approx.ftz.f32")
FUSEBOX_APPROXIMATION(tanh, "tanh.approx.f32")
#undef FUSEBOX_APPROXIMATION

__device__ __forceinline__ float exp(float x) { return exp2(x * 1.4426950408889634f); }
__device__ __forceinline__ float log(float x) { return log2(x) * 0.6931471805599453f; }
__device__ __forceinline__ float log10(float x) { return log2(x) * 0.30102999566398120f; }
__device__ __forceinline__ float sigmoid(float x) { return reciprocal(1.0f + exp(-x)); }
__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }
// The compiler computes the reciprocal of a divisor once where it divides several numbers.
__device__ __forceinline__ float divide(float x, float y) { return x * reciprocal(y); }

}  // namespace fast

#endif
