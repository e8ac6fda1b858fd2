// sin, cos and tan of float.
//
// x = n·π/2 + r with |r| <= π/4. Up to 2^16, n·π/2 is subtracted in three parts (W. J. Cody and W. Waite, "Software
// Manual for the Elementary Functions", 1980): the first difference is exact. Beyond, the fraction of x·2/π is computed in
// integers with as many bits of 2/π as its exponent asks for (M. Payne and R. Hanek, "Radian Reduction for Trigonometric
// Functions", 1983).
#ifndef FUSEBOX_EXACT_TRIGONOMETRY_FLOAT_CUH
#define FUSEBOX_EXACT_TRIGONOMETRY_FLOAT_CUH

#include "elementary.cuh"

namespace exact {

struct AngleFloat {
  float r, low;  // the remainder and what its rounding lost
  uint32_t quadrant;
};

FUSEBOX_EXACT bool is_far_angle(float x) { return magnitude(x) > 65536.0f; }

// For |x| <= 2^16. The parts of π/2 are positive, so that r is -0 for -0.
FUSEBOX_EXACT AngleFloat near_angle(float x) {
  const float rounded = fma(x, 0x1.45f306p-1f, 12582912.0f), n = rounded - 12582912.0f;
  const float first = fma(n, -0x1.921fb4p+0f, x);
  const float r = fma(n, -0x1.84698ap-48f, fma(n, -0x1.4442d0p-24f, first));
  // The exact sum of `first` and the product, for `low`.
  const float product = n * -0x1.4442d0p-24f, sum = first + product, part = sum - first;
  const float lost = first - (sum - part) + (product - part) + fma(n, -0x1.4442d0p-24f, -product);
  return {r, fma(n, -0x1.84698ap-48f, sum - r) + lost, bits_of(rounded)};
}

// For any finite number beyond.
FUSEBOX_EXACT AngleFloat far_angle(float x) {
  const uint32_t bits = bits_of(x), mantissa = (bits & 0x7fffffu) | 0x800000u;
  // x = mantissa·2^shift; of 2/π, the bits from 2^(1 - shift) down matter. 32 zeros stand in front of the fraction.
  const uint32_t from = ((bits >> 23) & 255u) - 150u + 30u, word = from >> 5, rest = from & 31u;
  uint32_t a = 0, b = 0xa2f9836eu, c = 0x4e441529u, d = 0xfc2757d1u;
  if (word >= 1) a = b, b = c, c = d, d = 0xf534ddc0u;
  if (word >= 2) a = b, b = c, c = d, d = 0xdb629599u;
  if (word >= 3) a = b, b = c, c = d, d = 0x3c439041u;
  if (word >= 4) a = b, b = c, c = d, d = 0xfe5163abu;
  const uint32_t high = uint32_t(((uint64_t(a) << 32 | b) << rest) >> 32);
  const uint32_t middle = uint32_t(((uint64_t(b) << 32 | c) << rest) >> 32);
  const uint32_t low = uint32_t(((uint64_t(c) << 32 | d) << rest) >> 32);
  // The product modulo 4, in units of 2^-62.
  const uint64_t part = uint64_t(mantissa) * middle + (uint64_t(mantissa) * low >> 32);
  const uint64_t product = (uint64_t(mantissa * high) << 32) + part;
  const uint64_t quadrant = (product + (uint64_t(1) << 61)) >> 62;
  const uint64_t fraction = product - (quadrant << 62);
  const bool is_negative = int64_t(fraction) < 0;
  const uint64_t size = (is_negative ? ~fraction + 1 : fraction) | 1;
  const int zeros = leading_zeros(size);
  // Times π/2, in units of 2^(-60 - zeros), below 2^63.
  const int64_t angle = int64_t(high_product(size << zeros, uint64_t(0xc90fdaa22168c235)) >> 1);
  const float nearest = float(angle);
  const float unit = from_bits(uint32_t(127 - 60 - zeros) << 23);
  const float sign = is_negative != (bits >> 31 != 0) ? -unit : unit;
  return {nearest * sign, float(angle - int64_t(nearest)) * sign,
          bits >> 31 != 0 ? 0u - uint32_t(quadrant) : uint32_t(quadrant)};
}

// sin of the angle, with the sign of another number.
FUSEBOX_EXACT float sin_of(AngleFloat a, float sign) {
  const float z = a.r * a.r;
  const float s = fma(fma(-0x1.9953fep-13f, z, 0x1.110778p-7f), z, -0x1.555546p-3f);
  const float sine = fma(a.r * z, s, a.r);
  const float c = fma(fma(0x1.99e80cp-16f, z, -0x1.6c0c28p-10f), z, 0x1.55554ap-5f);
  const float cosine = fma(fma(c, z, -0.5f), z, 1.0f);
  const float y = (a.quadrant & 1u) != 0 ? cosine : sine;
  return canonical(y * flip(1.0f, from_bits(bits_of(sign) ^ a.quadrant << 30)));
}
FUSEBOX_EXACT float tan_of(AngleFloat a) {
  const float z = a.r * a.r;
  float p = 0x1.1e9268p-8f;
  p = fma(p, z, 0x1.9bd38cp-14f);
  p = fma(p, z, 0x1.62cb66p-7f);
  p = fma(p, z, 0x1.5cc0d0p-6f);
  p = fma(p, z, 0x1.bad9c2p-5f);
  p = fma(p, z, 0x1.110d9ep-3f);
  p = fma(p, z, 0x1.555560p-2f);
  // tan(r + low) = tan r + low·(1 + tan² r). What is lacking is subtracted, so that a zero keeps its sign.
  const float t = a.r * z * p + a.r;
  const float excess = fma(-(a.r * z), p, t - a.r) - fma(t * t, a.low, a.low);
  const float y = reciprocal_in_range(t);
  const float e = fma(excess, y, fma(-t, y, 1.0f));
  return canonical((a.quadrant & 1u) != 0 ? -fma(e, y, y) : t - excess);
}

// NaN for infinities: x - x is NaN there, 0 for the others.
FUSEBOX_EXACT AngleFloat angle(float x) {
  if (!is_far_angle(x)) return near_angle(x);
  AngleFloat a = far_angle(x);
  a.r += x - x;
  return a;
}

FUSEBOX_EXACT float cos_of(AngleFloat a) {
  a.quadrant += 1u;
  return sin_of(a, 1.0f);
}

FUSEBOX_EXACT float sin(float x) { return sin_of(angle(magnitude(x)), x); }
FUSEBOX_EXACT float cos(float x) { return cos_of(angle(x)); }
FUSEBOX_EXACT float tan(float x) { return tan_of(angle(x)); }

// The same for |x| <= 2^16, without a branch.
FUSEBOX_EXACT float near_sin(float x) { return sin_of(near_angle(magnitude(x)), x); }
FUSEBOX_EXACT float near_cos(float x) { return cos_of(near_angle(x)); }
FUSEBOX_EXACT float near_tan(float x) { return tan_of(near_angle(x)); }

}  // namespace exact

#endif
