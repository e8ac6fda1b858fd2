// Ordering functions of integers and real numbers.
//
//   minimum(1.0f, NAN) is NaN;  relu(-0.0f) is -0.0f;  sign(NAN) == 0;  clamp(5, 1, 3) == 3
#ifndef FUSEBOX_COMPARE_CUH
#define FUSEBOX_COMPARE_CUH

#include "types.cuh"

template <class T>
__device__ T minimum(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
__device__ T maximum(T a, T b) {
  return a != a || a > b ? a : b;
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
    return x < T(0) ? T(0) : x;
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
  return x <= limit ? value : x;
}

#endif
