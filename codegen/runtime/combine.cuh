// What a reduction combines two values with: `Op::combine(a, b)`. Narrow floats are combined in float and rounded once.
//
//   Sum::combine(1.0f, 2.0f) == 3.0f;  Max::combine(1.0f, NAN) is NaN
//   Merge::combine(Welford<float, int>{1, 0, 1}, {3, 0, 1}) == {2, 2, 2}
#ifndef FUSEBOX_COMBINE_CUH
#define FUSEBOX_COMBINE_CUH

#include "compare.cuh"
#include "complex.cuh"
#include "integer.cuh"

struct Sum {
  template <class T>
  __device__ static T combine(T a, T b) {
    if constexpr (kIsNarrowFloat<T>)
      return T(float(a) + float(b));
    else if constexpr (kIsInteger<T>)
      return wrapping_add(a, b);
    else
      return T(a + b);
  }
};
struct Prod {
  template <class T>
  __device__ static T combine(T a, T b) {
    if constexpr (kIsNarrowFloat<T>)
      return T(float(a) * float(b));
    else if constexpr (kIsInteger<T>)
      return wrapping_mul(a, b);
    else
      return T(a * b);
  }
};
struct Min {
  template <class T>
  __device__ static T combine(T a, T b) {
    if constexpr (kIsNarrowFloat<T>)
      return T(minimum(float(a), float(b)));
    else
      return minimum(a, b);
  }
};
struct Max {
  template <class T>
  __device__ static T combine(T a, T b) {
    if constexpr (kIsNarrowFloat<T>)
      return T(maximum(float(a), float(b)));
    else
      return maximum(a, b);
  }
};

// The mean of n numbers and the sum of their squared distances from it.
template <class T, class N>
struct Welford {
  T avg, m2;
  N n;
};
// A count as a float. GPUs convert 64-bit integers at a quarter of the rate of 32-bit ones, and most counts fit 32 bits.
template <class C, class N>
__device__ C count_as(N n) {
  if constexpr (kIsInteger<N> && sizeof(N) == 8) {
    if (uint64_t(n) >> 32 == 0) return C(uint32_t(n));
  }
  return C(n);
}
// T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances",
// 1979.
template <class T, class N>
__device__ Welford<T, N> welford_combine(Welford<T, N> a, Welford<T, N> b) {
  using C = typename Select<kIsNarrowFloat<T>, float, T>::type;
  if (b.n == N(0)) return a.n == N(0) ? Welford<T, N>{T(C(0)), T(C(0)), N(0)} : a;
  if (a.n == N(0)) return b;
  const N n = N(a.n + b.n);
  const C distance = C(b.avg) - C(a.avg);
  const C share = count_as<C>(b.n) / count_as<C>(n);
  return {T(C(a.avg) + distance * share), T(C(a.m2) + C(b.m2) + distance * distance * count_as<C>(a.n) * share), n};
}
// 1 / n, rounded like the division, for n from 1 to 2^64: the compiler's own sequence, without its check for numbers
// near the ends of the range.
__device__ inline double reciprocal_of_count(double n) { return 1 / n; }
__device__ inline float reciprocal_of_count(float n) {
  float estimate;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(n));
  return __fmaf_rn(estimate, -__fmaf_rn(n, estimate, -1.0f), estimate);
}
// welford_combine(a, {x, 0, 1}), with the same bits.
template <class T, class N>
__device__ Welford<T, N> welford_add(Welford<T, N> a, T x) {
  using C = typename Select<kIsNarrowFloat<T>, float, T>::type;
  const N n = N(a.n + N(1));
  const C distance = C(x) - C(a.avg), share = reciprocal_of_count(count_as<C>(n));
  const T avg = T(C(a.avg) + distance * share), m2 = T(C(a.m2) + distance * distance * count_as<C>(a.n) * share);
  const bool is_first = a.n == N(0);
  return {is_first ? x : avg, is_first ? T(C(0)) : m2, n};
}
struct Merge {
  template <class T, class N>
  __device__ static Welford<T, N> combine(Welford<T, N> a, Welford<T, N> b) {
    return welford_combine(a, b);
  }
};

#endif
