// Ordering functions of integers and real numbers.
//
//   minimum(1.0f, NAN) is NaN;  relu(-0.0f) is -0.0f;  sign(NAN) == 0;  clamp(5, 1, 3) == 3
#ifndef FUSEBOX_COMPARE_CUH
#define FUSEBOX_COMPARE_CUH

#include "types.cuh"

// `condition ? a : b`. Where the result is a signed integer of at most 32 bits, the compiler must not see that this is
// a minimum or maximum: for sm_90 and later, ptxas 12.9 and 13.0 make one instruction, VIMNMX3, of two of them, and
// lose the sign change of an operand. max(max(a, -b), c) comes out as max(max(a, b), c).
template <class T>
__device__ T choose(bool condition, T a, T b) {
  if constexpr (kIsInteger<T> && kIsSigned<T> && sizeof(T) <= 4) {
    int32_t result;
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.b32 %0, %1, %2, p; }"
        : "=r"(result)
        : "r"(int32_t(a)), "r"(int32_t(b)), "r"(uint32_t(condition)));
    return T(result);
  } else {
    return condition ? a : b;
  }
}

// NaN if either operand is; of two zeros the negative one (minimum) or the positive one (maximum). One instruction each.
__device__ inline float minimum(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ inline float maximum(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
template <class T>
__device__ T minimum(T a, T b) {
  return choose(a != a || a < b, a, b);
}
template <class T>
__device__ T maximum(T a, T b) {
  return choose(a != a || a > b, a, b);
}
template <class T>
__device__ T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}
template <class T>
__device__ T relu(T x) {
  if constexpr (T(-1) > T(0))
    return x;  // unsigned
  else
    return choose(x < T(0), T(0), x);
}
template <class T>
__device__ T sign(T x) {
  if constexpr (T(-1) > T(0))
    return T(x > T(0));  // unsigned
  else
    return T((x > T(0)) - (x < T(0)));
}
template <class T>
__device__ T threshold(T x, T limit, T value) {
  return choose(x <= limit, value, x);
}

#endif
