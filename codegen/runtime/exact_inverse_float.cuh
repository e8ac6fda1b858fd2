// asin, acos, atan, atan2, asinh, acosh and atanh of float.
#ifndef FUSEBOX_EXACT_INVERSE_FLOAT_CUH
#define FUSEBOX_EXACT_INVERSE_FLOAT_CUH

#include "exact_logarithm_float.cuh"

namespace exact {

// (asin(s) - s) / s³ for z = s² <= 1/4
FUSEBOX_EXACT float asin_polynomial(float z) {
  float p = 0x1.596d2cp-5f;
  p = fma(p, z, 0x1.8c2daep-6f);
  p = fma(p, z, 0x1.747d04p-5f);
  p = fma(p, z, 0x1.3301fcp-4f);
  return fma(p, z, 0x1.5555c8p-3f);
}

// Above 1/2, asin x = π/2 - 2·asin(√((1 - x) / 2)), and acos x is the second term.
FUSEBOX_EXACT float asin(float x) {
  const float a = magnitude(x);
  const bool is_near = !(a > 0.5f);
  const float half = fma(a, -0.5f, 0.5f), s = is_near ? a : root(half), z = is_near ? a * a : half;
  const float rest = s * z * asin_polynomial(z);
  // The rounding error of π/2, 0x1.777a5cp-25, and that of the difference count.
  const float difference = fma(-2.0f, s, 0x1.921fb6p+0f);
  const float lost = fma(-2.0f, s, 0x1.921fb6p+0f - difference) - fma(2.0f, rest, 0x1.777a5cp-25f);
  const float far = difference + lost;
  const float y = is_near ? s + rest : far;
  return canonical(y * flip(1.0f, x));
}
FUSEBOX_EXACT float acos(float x) {
  const float a = magnitude(x);
  const bool is_near = !(a > 0.5f);
  const float half = fma(a, -0.5f, 0.5f), s = is_near ? x : root(half), z = is_near ? x * x : half;
  const float rest = s * z * asin_polynomial(z);
  const float near = 0x1.921fb6p+0f - (s + (rest + 0x1.777a5cp-25f));
  const float twice = (s + rest) * 2.0f;
  const float far = x < 0.0f ? 0x1.921fb6p+1f - (twice + 0x1.777a5cp-24f) : twice;
  return canonical(is_near ? near : far);
}

// (atan(s) - s) / s³ for z = s² <= 1
FUSEBOX_EXACT float atan_polynomial(float z) {
  float p = -0x1.d361e0p-10f;
  p = fma(p, z, 0x1.6427fep-7f);
  p = fma(p, z, -0x1.fd800ap-6f);
  p = fma(p, z, 0x1.da2aa0p-5f);
  p = fma(p, z, -0x1.580930p-4f);
  p = fma(p, z, 0x1.c08c50p-4f);
  p = fma(p, z, -0x1.242086p-3f);
  p = fma(p, z, 0x1.9991e4p-3f);
  return fma(p, z, -0x1.55553ep-2f);
}

// Above 1, π/2 - atan(1 / x).
FUSEBOX_EXACT float atan(float x) {
  const float a = magnitude(x);
  const bool is_far = a > 1.0f;
  const float s = is_far ? 1.0f / a : a, z = s * s;
  const float y = fma(s * z, atan_polynomial(z), s);
  return canonical((is_far ? 0x1.921fb6p+0f - (y + 0x1.777a5cp-25f) : y) * flip(1.0f, x));
}

// atan(y / x) in the quadrant of (x, y), from the quotient of the smaller magnitude and the larger.
FUSEBOX_EXACT float atan2(float y, float x) {
  const float a = magnitude(x), b = magnitude(y);
  const bool is_steep = b > a, is_equal = a == b;
  const float quotient = (is_steep ? a : b) / (is_steep ? b : a);
  // 0 / 0 counts as 0, infinity / infinity as 1; NaN stays.
  const float s = is_equal ? (a == 0.0f ? 0.0f : 1.0f) : quotient, z = s * s;
  const float first = fma(s * z, atan_polynomial(z), s);
  const float second = is_steep ? 0x1.921fb6p+0f - (first + 0x1.777a5cp-25f) : first;
  const float third = bits_of(x) >> 31 != 0 ? 0x1.921fb6p+1f - (second + 0x1.777a5cp-24f) : second;
  return canonical(x != x || y != y ? not_a_number(x) : flip(third, y));
}

// log1p of a small number plus what its square root gives; log(2a) for large ones.
FUSEBOX_EXACT float asinh(float x) {
  const float a = magnitude(x);
  const bool is_large = a > 0x1p12f;
  const float b = is_large ? 1.0f : a, z = b * b;
  const float near = log1p(fma(z, 1.0f / (1.0f + root(fma(b, b, 1.0f))), b));
  const float y = is_large ? log(a) + 0x1.62e430p-1f : near;
  return canonical(y * flip(1.0f, x));
}
// log1p(z + low) is log1p(z) + low / (1 + z), where `low` is what the rounding of z lost.
FUSEBOX_EXACT float acosh(float x) {
  const bool is_large = x > 0x1p12f;
  const float t = is_large ? 1.0f : x - 1.0f;
  const float square = fma(t, t, t + t), s = root(square), z = t + s;
  const float square_lost = fma(t, t, t + t - square);
  const float s_lost = s > 0.0f ? (fma(-s, s, square) + square_lost) / (s + s) : 0.0f;
  const float near = log1p(z) + (s - z + t + s_lost) / (1.0f + z);
  const float y = is_large ? log(x) + 0x1.62e430p-1f : near;
  return canonical(x < 1.0f ? not_a_number(x) : y);
}
// With z = 2a / (1 - a), the residual of the division over 1 - a and over 1 + z is the residual over 1 + a.
FUSEBOX_EXACT float atanh(float x) {
  const float a = magnitude(x), below = 1.0f - a, z = (a + a) / below;
  const float residual = fma(-z, below, a + a) - z * (1.0f - below - a);
  const float y = log1p(z);
  return canonical(0.5f * (a < 1.0f ? y + residual / (1.0f + a) : y) * flip(1.0f, x));
}

}  // namespace exact

#endif
