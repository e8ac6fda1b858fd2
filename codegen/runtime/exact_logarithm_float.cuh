// log, log2, log10 and log1p of float.
//
// x = 2^e·(1 + f) with 1 + f in [√½, √2); log(1 + f) = f + f²·P(f).
#ifndef FUSEBOX_EXACT_LOGARITHM_FLOAT_CUH
#define FUSEBOX_EXACT_LOGARITHM_FLOAT_CUH

#include "elementary.cuh"

namespace exact {

struct LogarithmParts {
  float exponent, fraction;
};
// For positive numbers.
FUSEBOX_EXACT LogarithmParts logarithm_parts(float x) {
  const bool is_subnormal = x < 0x1p-126f;
  const uint32_t bits = bits_of(is_subnormal ? x * 0x1p23f : x);
  const uint32_t power = (bits - 0x3f3504f3u) & 0xff800000u;
  return {fma(float(int32_t(power)), 0x1p-23f, is_subnormal ? -23.0f : 0.0f), from_bits(bits - power) - 1.0f};
}
// The logarithms of what is no positive number, infinity among them; `result` for the others.
FUSEBOX_EXACT float logarithm_or(float x, float result) {
  const float special = fma(x, infinity(x), infinity(x));
  const float y = bits_of(x) >= 0x7f800000u ? special : result;
  return canonical(x == 0.0f ? -infinity(x) : y);
}

// (log(1 + f) - f) / f²
FUSEBOX_EXACT float log_polynomial(float f) {
  float p = -0x1.381522p-4f;
  p = fma(p, f, 0x1.08758cp-3f);
  p = fma(p, f, -0x1.0f5214p-3f);
  p = fma(p, f, 0x1.226c7ap-3f);
  p = fma(p, f, -0x1.5423e6p-3f);
  p = fma(p, f, 0x1.99a41cp-3f);
  p = fma(p, f, -0x1.000438p-2f);
  p = fma(p, f, 0x1.555550p-2f);
  return fma(p, f, -0x1.fffff8p-2f);
}

FUSEBOX_EXACT float log(float x) {
  const LogarithmParts l = logarithm_parts(x);
  const float y = fma(l.fraction * l.fraction, log_polynomial(l.fraction), l.fraction);
  return logarithm_or(x, fma(l.exponent, 0x1.62e430p-1f, y));
}

// The factor 1 / log(base) has two parts.
FUSEBOX_EXACT float log2(float x) {
  const LogarithmParts l = logarithm_parts(x);
  const float f = l.fraction, rest = f * f * log_polynomial(f);
  float y = fma(rest, 0x1.715476p+0f, f * 0x1.4ae0c0p-26f);
  y = fma(f, 0x1.715476p+0f, y);
  return logarithm_or(x, y + l.exponent);
}
FUSEBOX_EXACT float log10(float x) {
  const LogarithmParts l = logarithm_parts(x);
  const float f = l.fraction, rest = f * f * log_polynomial(f);
  float y = fma(rest, 0x1.bcb7b2p-2f, f * -0x1.5b235ep-27f);
  y = fma(l.exponent, -0x1.ec10c0p-27f, y);
  y = fma(f, 0x1.bcb7b2p-2f, y);
  return logarithm_or(x, fma(l.exponent, 0x1.344136p-2f, y));
}

// The exponent is that of 1 + x. The fraction is made of x itself: 2^-e·x + (2^-e - 1). Its sign stays that of x for
// zeros.
FUSEBOX_EXACT float log1p(float x) {
  const float sum = 1.0f + x;
  const uint32_t power = (bits_of(sum) - 0x3f3504f3u) & 0xff800000u;
  const uint32_t quadruple = 0x40800000u - power;  // the bits of 4·2^-e, which is normal where 2^-e may not be
  const float f = from_bits(bits_of(x) - power) - fma(from_bits(quadruple), -0.25f, 1.0f);
  const float minus_e = float(int32_t(quadruple - 0x40800000u)) * 0x1p-23f;
  const float y = fma(f * f, log_polynomial(f), f);
  const float result = fma(minus_e, -0x1.62e430p-1f, y);
  const float special = fma(sum, infinity(x), infinity(x));
  const float z = bits_of(sum) >= 0x7f800000u ? special : result;
  return canonical(sum == 0.0f ? -infinity(x) : z);
}

}  // namespace exact

#endif
