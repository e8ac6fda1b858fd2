// Division of many floats by one, with the bits of IEEE's quotient: the reciprocal is computed once, and each quotient
// takes a multiplication and two fused multiply-adds. The same text is compiled for the host by
// tests/property/division_test.cc.
//
// Why the quotient is right. Let z be 1 / y rounded, q0 = x z rounded, and r = x - q0 y. Count in units of the last place
// of x / y, and let y have the significand s, so that 1 <= s < 2.
// - z has a relative error of at most s 2^-25. So q0 is less than 1 unit away from x / y if the significand of x is the
//   larger one, and less than 1.5 units otherwise.
// - x / y is never half-way between two floats. It is at least 2^-24 / s units away from there.
// - Less than 1 unit away, r is exact. Then q0 + r z, before it is rounded, is off by at most |x / y - q0| s 2^-25 units. Near
//   a half-way point, |x / y - q0| is half a unit, and so the error is less than the distance from that point.
// - From 1 to 1.5 units away, only a difference of nearly 1.5 units comes near a half-way point. This takes an x whose
//   significand is within 4 units of 2, and a larger one of y. The test tries these pairs.
// No number here is subnormal or overflows, because x and y are in the ranges below; any other pair is divided as usual.
//
// A branch for each quotient would cost more than the quotient. So a loop that divides only marks, in the top bit of
// `outside`, that one of its dividends is out of range, and runs a second time if so, with plain divisions
// (codegen/cuda.cc). A zero is in range there: if y is positive, the correction of -0 is -0.
//
//   const Divisor d(3.0f);
//   quotient(1.0f, d) == 1.0f / 3.0f
#ifndef FUSEBOX_DIVISION_CUH
#define FUSEBOX_DIVISION_CUH

#include "elementary.cuh"

struct Divisor {
  float value, reciprocal;
  uint32_t unusable;  // the top bit is set if no quotient may use the reciprocal
  uint32_t outside;   // the first value of `outside` for a loop

  FUSEBOX_EXACT explicit Divisor(float y) : value(y), reciprocal(1.0f / y) {
    const float size = exact::magnitude(y);
    unusable = size >= 0x1p-24f && size <= 0x1p24f ? 0 : 0x80000000u;
    outside = unusable | (exact::bits_of(y) & 0x80000000u);
  }
};

// The top bit is set unless 2^-100 <= |x| < 2^28: twice the bits of x without its sign, less those of 2^-100.
FUSEBOX_EXACT uint32_t outside_of_range(float x) { return (exact::bits_of(x) << 1) - (127 - 100) * (1u << 24); }

FUSEBOX_EXACT float corrected(float x, const Divisor& y, float estimate) {
  return exact::fma(exact::fma(estimate, y.value, -x), -y.reciprocal, estimate);
}

// x / y, or any number if the top bit of `outside` is set afterwards.
FUSEBOX_EXACT float quotient(float x, const Divisor& y, uint32_t& outside) {
  if (x != 0.0f) outside |= outside_of_range(x);
  return corrected(x, y, x * y.reciprocal);
}

FUSEBOX_EXACT float quotient(float x, const Divisor& y) {
  if ((outside_of_range(x) | y.unusable) >> 31 == 0) return corrected(x, y, x * y.reciprocal);
  return x / y.value;
}

#endif
