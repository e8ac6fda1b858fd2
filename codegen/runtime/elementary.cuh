// What the elementary functions of `exact_*.cuh` are made of. The same text is compiled here for a GPU and for the host
// executor (replay/host/lanes_exact.cc), and gives the same bits in both.
//
// Invariants:
// - Every rounding is written out: a fused multiply-add is `fma`, and the compilers may neither make nor split one
//   (--fmad=false there, -ffp-contract=off here).
// - No conversion of a number that might not fit, no minimum or maximum with two possible answers, no table in memory.
//   Rounding to an integer is done by adding and subtracting a large number.
// - Subnormal operands and results count in full.
// - A NaN that a function returns is `canonical`: of float the bits 0x7fffffff, which is what a GPU's arithmetic makes of
//   any NaN; of double 0x7fffffffffffffff.
//
//   exact::exp(1.0f) == 2.71828174591064453125f, on every machine
#ifndef FUSEBOX_ELEMENTARY_CUH
#define FUSEBOX_ELEMENTARY_CUH

#if defined(__CUDACC__)
#include "types.cuh"
#define FUSEBOX_EXACT __device__ __forceinline__
#else
#include <bit>
#include <cmath>
#include <cstdint>
#define FUSEBOX_EXACT inline __attribute__((always_inline))
#endif

namespace exact {

#if defined(__CUDACC__)
FUSEBOX_EXACT float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
FUSEBOX_EXACT double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
FUSEBOX_EXACT uint32_t bits_of(float x) { return __float_as_uint(x); }
FUSEBOX_EXACT uint64_t bits_of(double x) { return uint64_t(__double_as_longlong(x)); }
FUSEBOX_EXACT float from_bits(uint32_t bits) { return __uint_as_float(bits); }
FUSEBOX_EXACT double from_bits(uint64_t bits) { return __longlong_as_double(int64_t(bits)); }
FUSEBOX_EXACT float root(float x) { return __fsqrt_rn(x); }
FUSEBOX_EXACT double root(double x) { return __dsqrt_rn(x); }
FUSEBOX_EXACT uint64_t high_product(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
FUSEBOX_EXACT int leading_zeros(uint64_t x) { return __clzll(int64_t(x)); }
#else
FUSEBOX_EXACT float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FUSEBOX_EXACT double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
FUSEBOX_EXACT uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
FUSEBOX_EXACT uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
FUSEBOX_EXACT float from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
FUSEBOX_EXACT double from_bits(uint64_t bits) { return __builtin_bit_cast(double, bits); }
FUSEBOX_EXACT float root(float x) { return __builtin_sqrtf(x); }
FUSEBOX_EXACT double root(double x) { return __builtin_sqrt(x); }
FUSEBOX_EXACT uint64_t high_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return uint64_t(Wide(a) * b >> 64);
}
FUSEBOX_EXACT int leading_zeros(uint64_t x) { return __builtin_clzll(x); }
#endif

FUSEBOX_EXACT float infinity(float) { return from_bits(0x7f800000u); }
FUSEBOX_EXACT double infinity(double) { return from_bits(uint64_t(0x7ff0000000000000)); }
FUSEBOX_EXACT float not_a_number(float) { return from_bits(0x7fffffffu); }
FUSEBOX_EXACT double not_a_number(double) { return from_bits(uint64_t(0x7fffffffffffffff)); }

// For the result of arithmetic: on a GPU a NaN of float is canonical already.
FUSEBOX_EXACT float canonical(float x) {
#if defined(__CUDACC__)
  return x;
#else
  return x == x ? x : not_a_number(x);
#endif
}
FUSEBOX_EXACT double canonical(double x) { return x == x ? x : not_a_number(x); }

// The smaller of x and a limit that is a number; NaN stays NaN.
FUSEBOX_EXACT float at_most(float x, float limit) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(limit));
  return result;
#else
  return x > limit ? limit : x;
#endif
}
FUSEBOX_EXACT double at_most(double x, double limit) { return x > limit ? limit : x; }
FUSEBOX_EXACT float at_least(float x, float limit) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(limit));
  return result;
#else
  return x < limit ? limit : x;
#endif
}
FUSEBOX_EXACT double at_least(double x, double limit) { return x < limit ? limit : x; }

FUSEBOX_EXACT float magnitude(float x) { return from_bits(bits_of(x) & 0x7fffffffu); }
FUSEBOX_EXACT double magnitude(double x) { return from_bits(bits_of(x) & uint64_t(0x7fffffffffffffff)); }
// x, negated where the sign bit of `sign` is set.
FUSEBOX_EXACT float flip(float x, float sign) { return from_bits(bits_of(x) ^ (bits_of(sign) & 0x80000000u)); }
FUSEBOX_EXACT double flip(double x, double sign) {
  return from_bits(bits_of(x) ^ (bits_of(sign) & uint64_t(0x8000000000000000)));
}

// x with the sign bit of another number set, too.
FUSEBOX_EXACT float signed_as(float x, float sign) { return from_bits(bits_of(x) | (bits_of(sign) & 0x80000000u)); }
FUSEBOX_EXACT double signed_as(double x, double sign) {
  return from_bits(bits_of(x) | (bits_of(sign) & uint64_t(0x8000000000000000)));
}

// 1 / x, correctly rounded, for 2^-126 <= |x| <= 2^126 and NaN. The GPU's approximation with one correction is what the
// compiler makes of a division there, without its test for other operands.
FUSEBOX_EXACT float reciprocal_in_range(float x) {
#if defined(__CUDACC__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return fma(y, fma(-x, y, 1.0f), y);
#else
  return 1.0f / x;
#endif
}

}  // namespace exact

#endif
