// sin, cos and tan of double, as exact_trigonometry_float.cuh computes them: by subtraction up to 2^24, and in integers
// beyond.
#ifndef FUSEBOX_EXACT_TRIGONOMETRY_DOUBLE_CUH
#define FUSEBOX_EXACT_TRIGONOMETRY_DOUBLE_CUH

#include "elementary.cuh"

namespace exact {

struct AngleDouble {
  double r, low;  // the remainder and what its rounding lost
  uint32_t quadrant;
};

FUSEBOX_EXACT bool is_far_angle(double x) { return magnitude(x) > 0x1p24; }

// For |x| <= 2^24. The parts of π/2 are positive, so that r is -0 for -0.
FUSEBOX_EXACT AngleDouble near_angle(double x) {
  const double rounded = fma(x, 0x1.45f306dc9c883p-1, 6755399441055744.0), n = rounded - 6755399441055744.0;
  const double first = fma(n, -0x1.921fb54442d18p+0, x);
  const double r = fma(n, -0x1.c1cd129024e08p-107, fma(n, -0x1.1a62633145c06p-54, first));
  // The exact sum of `first` and the product, for `low`.
  const double product = n * -0x1.1a62633145c06p-54, sum = first + product, part = sum - first;
  const double lost = first - (sum - part) + (product - part) + fma(n, -0x1.1a62633145c06p-54, -product);
  return {r, fma(n, -0x1.c1cd129024e08p-107, sum - r) + lost, uint32_t(bits_of(rounded))};
}

// 64 zeros and the first 1216 bits of 2/π. Only operands far from zero read it.
#if defined(__CUDACC__)
__device__
#endif
    constexpr uint64_t kTwoOverPi[] = {
        0,
        0xa2f9836e4e441529,
        0xfc2757d1f534ddc0,
        0xdb6295993c439041,
        0xfe5163abdebbc561,
        0xb7246e3a424dd2e0,
        0x06492eea09d1921c,
        0xfe1deb1cb129a73e,
        0xe88235f52ebb4484,
        0xe99c7026b45f7e41,
        0x3991d639835339f4,
        0x9c845f8bbdf9283b,
        0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f,
        0x6d367ecf27cb09b7,
        0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea,
        0x6bfb5fb11f8d5d08,
        0x56033046fc7b6bab,
};

// For any finite number beyond.
FUSEBOX_EXACT AngleDouble far_angle(double x) {
  const uint64_t bits = bits_of(x), mantissa = (bits & uint64_t(0x000fffffffffffff)) | uint64_t(0x0010000000000000);
  // x = mantissa·2^shift; of 2/π, the bits from 2^(1 - shift) down matter.
  const uint32_t from = (uint32_t(bits >> 52) & 2047u) - 1075u + 62u, word = from >> 6, rest = from & 63u;
  const uint64_t a = kTwoOverPi[word], b = kTwoOverPi[word + 1], c = kTwoOverPi[word + 2], d = kTwoOverPi[word + 3];
  const uint64_t top = a << rest | b >> 1 >> (63u - rest), middle = b << rest | c >> 1 >> (63u - rest),
                 bottom = c << rest | d >> 1 >> (63u - rest);
  // The product modulo 4, in units of 2^-126, as two words.
  const uint64_t low = mantissa * middle + high_product(mantissa, bottom);
  const uint64_t high = mantissa * top + high_product(mantissa, middle) + uint64_t(low < mantissa * middle);
  const uint64_t quadrant = (high + (uint64_t(1) << 61)) >> 62;
  const uint64_t fraction = high - (quadrant << 62);
  const bool is_negative = int64_t(fraction) < 0;
  // The size of the fraction: a negation of both words.
  const uint64_t size_low = is_negative ? ~low + 1 : low;
  const uint64_t size_high = is_negative ? ~fraction + uint64_t(low == 0) : fraction;
  // Normalized: at least one of the first 64 bits is set, or the next 64 are taken.
  const bool is_tiny = size_high == 0;
  const uint64_t lead = is_tiny ? size_low : size_high, next = is_tiny ? 0 : size_low;
  const int zeros = leading_zeros(lead | 1);
  const uint64_t size = lead << zeros | next >> 1 >> (63 - zeros);
  // Times π/2, below 2^63.
  const int64_t angle = int64_t(high_product(size, uint64_t(0xc90fdaa22168c235)) >> 1);
  const double nearest = double(angle);
  const double unit = from_bits(uint64_t(1023 - 60 - zeros - (is_tiny ? 64 : 0)) << 52);
  const double sign = is_negative != (bits >> 63 != 0) ? -unit : unit;
  return {nearest * sign, double(angle - int64_t(nearest)) * sign,
          bits >> 63 != 0 ? 0u - uint32_t(quadrant) : uint32_t(quadrant)};
}

// sin of the angle, with the sign of another number.
FUSEBOX_EXACT double sin_of(AngleDouble a, double sign) {
  const double z = a.r * a.r;
  double s = 0x1.5d8b524bcb4bcp-33;
  s = fma(s, z, -0x1.ae5e4b7ad65ecp-26);
  s = fma(s, z, 0x1.71de355523919p-19);
  s = fma(s, z, -0x1.a01a019be91d9p-13);
  s = fma(s, z, 0x1.111111110f730p-7);
  s = fma(s, z, -0x1.5555555555548p-3);
  const double sine = fma(a.r * z, s, a.r);
  double c = -0x1.8fa65f01ac3b4p-37;
  c = fma(c, z, 0x1.1ee9db8ecc7b2p-29);
  c = fma(c, z, -0x1.27e4f7f141a90p-22);
  c = fma(c, z, 0x1.a01a019c8ed0ep-16);
  c = fma(c, z, -0x1.6c16c16c15013p-10);
  c = fma(c, z, 0x1.555555555554bp-5);
  const double cosine = fma(fma(c, z, -0.5), z, 1.0);
  const double y = (a.quadrant & 1u) != 0 ? cosine : sine;
  return canonical(y * flip(1.0, from_bits(bits_of(sign) ^ uint64_t(a.quadrant) << 62)));
}
FUSEBOX_EXACT double cos_of(AngleDouble a) {
  a.quadrant += 1u;
  return sin_of(a, 1.0);
}
FUSEBOX_EXACT double tan_of(AngleDouble a) {
  const double z = a.r * a.r;
  double p = 0x1.459f1a260049cp-17;
  p = fma(p, z, -0x1.9014055d6fd45p-16);
  p = fma(p, z, 0x1.90b790b990b06p-15);
  p = fma(p, z, -0x1.9c8cb2e78011ep-16);
  p = fma(p, z, 0x1.1676cd983edd7p-14);
  p = fma(p, z, 0x1.6066bef21322ap-14);
  p = fma(p, z, 0x1.fecd4d2d90cc4p-13);
  p = fma(p, z, 0x1.34c2fe6cc7e71p-11);
  p = fma(p, z, 0x1.7db0dbb77243fp-10);
  p = fma(p, z, 0x1.d6d2f48b63158p-9);
  p = fma(p, z, 0x1.226e3a30669a2p-7);
  p = fma(p, z, 0x1.664f485fbf9ddp-6);
  p = fma(p, z, 0x1.ba1ba1bab24ebp-5);
  p = fma(p, z, 0x1.11111111106dcp-3);
  p = fma(p, z, 0x1.555555555555dp-2);
  // tan(r + low) = tan r + low·(1 + tan² r). What is lacking is subtracted, so that a zero keeps its sign.
  const double t = a.r * z * p + a.r;
  const double excess = fma(-(a.r * z), p, t - a.r) - fma(t * t, a.low, a.low);
  const double y = 1.0 / t;
  const double e = fma(excess, y, fma(-t, y, 1.0));
  return canonical((a.quadrant & 1u) != 0 ? -fma(e, y, y) : t - excess);
}

// NaN for infinities: x - x is NaN there, 0 for the others.
FUSEBOX_EXACT AngleDouble angle(double x) {
  if (!is_far_angle(x)) return near_angle(x);
  AngleDouble a = far_angle(x);
  a.r += x - x;
  return a;
}

FUSEBOX_EXACT double sin(double x) { return sin_of(angle(magnitude(x)), x); }
FUSEBOX_EXACT double cos(double x) { return cos_of(angle(x)); }
FUSEBOX_EXACT double tan(double x) { return tan_of(angle(x)); }

// The same for |x| <= 2^24, without a branch.
FUSEBOX_EXACT double near_sin(double x) { return sin_of(near_angle(magnitude(x)), x); }
FUSEBOX_EXACT double near_cos(double x) { return cos_of(near_angle(x)); }
FUSEBOX_EXACT double near_tan(double x) { return tan_of(near_angle(x)); }

}  // namespace exact

#endif
