// Functions of real numbers that CUDA does not name, for float and double; what CUDA names (expf, erfinv …) is called
// as it is.
//
//   frac(-1.5f) == -0.5f;  python_remainder(-7.0f, 3.0f) == 2.0f
#ifndef FUSEBOX_REAL_CUH
#define FUSEBOX_REAL_CUH

#include "types.cuh"

__device__ inline float trunc_of(float x) { return truncf(x); }
__device__ inline double trunc_of(double x) { return trunc(x); }

template <class T>
__device__ T frac(T x) {
  return x - trunc_of(x);
}
// The C remainder, with b added where the signs differ. It is -0.0 for -0.0.
__device__ inline float python_remainder(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
__device__ inline double python_remainder(double a, double b) {
  const double r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
// x + weight * (y - x)
template <class T>
__device__ T lerp(T x, T y, T weight) {
  return x + weight * (y - x);
}

__device__ inline bool is_inf(float x) { return fabsf(x) == __int_as_float(0x7f800000); }
__device__ inline bool is_inf(double x) { return fabs(x) == __longlong_as_double(0x7ff0000000000000ll); }
template <class T>
__device__ bool is_nan(T x) {
  return x != x;
}
template <class T>
__device__ bool is_finite(T x) {
  return !is_nan(x) && !is_inf(x);
}
// False of a NaN: processors give the NaN of 0 / 0 different signs.
__device__ inline bool sign_bit(float x) { return !is_nan(x) && __float_as_int(x) < 0; }
__device__ inline bool sign_bit(double x) { return !is_nan(x) && __double_as_longlong(x) < 0; }

// The next number of a narrow dtype towards another one: of equal numbers the second, beyond the largest infinity, or
// NaN where the dtype has none.
template <class T>
__device__ T next_after(T from, T to) {
  constexpr int kSign = 8 * sizeof(T) - 1;
  const float a = float(from), b = float(to);
  if (a != a) return from;
  if (b != b || a == b) return to;
  if (a == 0.0f) return T::from_bits((to.bits >> kSign << kSign) | 1);
  return T::from_bits((b > a) == (a > 0.0f) ? from.bits + 1 : from.bits - 1);
}

#endif
