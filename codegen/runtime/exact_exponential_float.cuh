// exp, exp2, expm1, sigmoid, silu, tanh, sinh and cosh of float.
//
// x = n·ln 2 + r with an integer n; then e^x = 2^n·e^r, and e^r is a polynomial. ln 2 is subtracted in two parts (W. J.
// Cody and W. Waite, "Software Manual for the Elementary Functions", 1980). The polynomials are minimax fits
// (fit_elementary.py).
#ifndef FUSEBOX_EXACT_EXPONENTIAL_FLOAT_CUH
#define FUSEBOX_EXACT_EXPONENTIAL_FLOAT_CUH

#include "elementary.cuh"

namespace exact {

// Adding this leaves the nearest integer, plus the bias of an exponent, in the lowest bits.
FUSEBOX_EXACT constexpr float round_float() { return 12582912.0f + 127.0f; }

// 2^k from k + round_float(), for -127 < k < 128.
FUSEBOX_EXACT float power_of_two(float rounded) { return from_bits(bits_of(rounded) << 23); }

// e^r for |r| <= ln 2
FUSEBOX_EXACT float exp_polynomial(float r) {
  float p = 0x1.9b8962p-13f;
  p = fma(p, r, 0x1.71c2eep-10f);
  p = fma(p, r, 0x1.11276ep-7f);
  p = fma(p, r, 0x1.5549e4p-5f);
  p = fma(p, r, 0x1.555512p-3f);
  p = fma(p, r, 0x1.00000cp-1f);
  p = fma(p, r, 1.0f);
  return fma(p, r, 1.0f);
}

// n is even, so that 2^n is the square of a normal number, also where the result is subnormal.
FUSEBOX_EXACT float exp(float x) {
  const float y = at_most(at_least(x, -105.0f), 89.0f);
  const float rounded = fma(y, 0x1.715476p-1f, round_float());
  const float half = rounded - round_float();
  const float r = fma(half, 0x1.05c610p-28f, fma(half, -0x1.62e430p+0f, y));
  const float scale = power_of_two(rounded);
  return canonical(exp_polynomial(r) * scale * scale);
}

FUSEBOX_EXACT float exp2(float x) {
  const float y = at_most(at_least(x, -151.0f), 129.0f);
  const float rounded = fma(y, 0.5f, round_float());
  const float r = fma(rounded - round_float(), -2.0f, y);
  float p = 0x1.f486c0p-17f;
  p = fma(p, r, 0x1.481b04p-13f);
  p = fma(p, r, 0x1.5dbec6p-10f);
  p = fma(p, r, 0x1.3b1ff0p-7f);
  p = fma(p, r, 0x1.c6af9cp-5f);
  p = fma(p, r, 0x1.ebfbf8p-3f);
  p = fma(p, r, 0x1.62e432p-1f);
  p = fma(p, r, 1.0f);
  const float scale = power_of_two(rounded);
  return canonical(p * scale * scale);
}

// e^r - 1 for |r| <= ln 2 / 2
FUSEBOX_EXACT float expm1_polynomial(float r) {
  float p = 0x1.9e7ce4p-13f;
  p = fma(p, r, 0x1.6d3a84p-10f);
  p = fma(p, r, 0x1.1112d4p-7f);
  p = fma(p, r, 0x1.5554f8p-5f);
  p = fma(p, r, 0x1.555554p-3f);
  p = fma(p, r, 0.5f);
  return fma(r * r, p, r);
}

// e^r - 1 times 2^n, and 2^n - 1, both halved so that 2^128 does not overflow. Where n is 0, e^r - 1 itself is right also for
// subnormal numbers, and for -0 with its sign.
FUSEBOX_EXACT float expm1(float x) {
  const float y = at_most(at_least(x, -18.0f), 89.0f);
  const float rounded = fma(y, 0x1.715476p+0f, round_float());
  const float n = rounded - round_float();
  const float r = fma(n, -0x1.7f7d1cp-20f, fma(n, -0x1.62e400p-1f, y));
  const float scale = from_bits((bits_of(rounded) << 23) - 0x00800000u);  // 2^(n - 1)
  const float p = expm1_polynomial(r);
  const float half = fma(scale, p, scale - 0.5f);
  return canonical(n == 0.0f ? signed_as(p, x) : half + half);
}

// 1 / (1 + e^-x) = 2^n / (2^n + e^-r) for x = n·ln 2 + r. 2^n has two factors, of which only the last multiplication can
// leave the normal numbers.
struct SigmoidParts {
  float reciprocal, low, high;  // the result is their product
};
FUSEBOX_EXACT SigmoidParts sigmoid_parts(float x) {
  constexpr float kRound = 12582912.0f + 254.0f;
  const float y = at_most(at_least(x, -126.0f), 80.0f);
  const float rounded = fma(y, 0x1.715476p+0f, kRound);
  const float n = rounded - kRound;
  const float r = fma(n, 0x1.05c610p-29f, fma(n, -0x1.62e430p-1f, y));
  float p = 0x1.6a415ep-10f;
  p = fma(p, r, -0x1.1239c6p-7f);
  p = fma(p, r, 0x1.5558bcp-5f);
  p = fma(p, r, -0x1.555492p-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  p = fma(r * r, p, -r);
  const uint32_t bits = bits_of(rounded) << 22;
  const float low = from_bits(bits & 0x7f800000u), high = from_bits((bits + 0x00400000u) & 0x7f800000u);
  return {reciprocal_in_range(fma(low, high, p) + 1.0f), low, high};
}
FUSEBOX_EXACT float sigmoid(float x) {
  const SigmoidParts s = sigmoid_parts(x);
  return canonical(s.reciprocal * s.low * s.high);
}
// NaN at -infinity, as x / (1 + e^-x) is.
FUSEBOX_EXACT float silu(float x) {
  const SigmoidParts s = sigmoid_parts(x);
  const float y = at_least(x, -126.0f) * s.reciprocal * s.low * s.high;
  return canonical(x == -infinity(x) ? not_a_number(x) : y);
}

// h / (h + 1) with h = (e^2a - 1) / 2 for a = |x|
FUSEBOX_EXACT float tanh(float x) {
  const float a = at_most(magnitude(x), 9.25f);
  const float rounded = fma(a, 0x1.715476p+1f, round_float());
  const float n = rounded - round_float();
  const float r = fma(n, -0x1.62e430p-2f, a);
  float p = 0x1.6b8cc6p-5f;
  p = fma(p, r, 0x1.1226a6p-3f);
  p = fma(p, r, 0x1.555702p-2f);
  p = fma(p, r, 0x1.5554b2p-1f);
  p = fma(p, r, 0x1.fffffep-1f);
  p = fma(r * r, p, r);
  const float scale = power_of_two(rounded);
  const float h = fma(scale, p, fma(scale, 0.5f, -0.5f));
  const float below = h + 1.0f, y = reciprocal_in_range(below), q = h * y;
  const float rest = fma(below - 1.0f - h, q, fma(-below, q, h));
  return canonical(fma(rest, flip(y, x), flip(q, x)));
}

// With q = (e^a - 1) / 4: sinh a = 2q + q / (2q + 1/2), and cosh a = 2(q + 1/4) + 1 / (8(q + 1/4)).
FUSEBOX_EXACT float quarter_expm1(float a) {
  const float y = at_most(a, 89.6f);
  const float rounded = fma(y, 0x1.715476p+0f, round_float());
  const float n = rounded - round_float();
  const float r = fma(n, 0x1.05c610p-29f, fma(n, -0x1.62e430p-1f, y));
  const float scale = from_bits((bits_of(rounded) << 23) - 0x01000000u);  // 2^(n - 2)
  return fma(scale, expm1_polynomial(r), scale - 0.25f);
}
FUSEBOX_EXACT float sinh(float x) {
  const float q = quarter_expm1(magnitude(x));
  const float far = fma(q, 2.0f, q / fma(q, 2.0f, 0.5f));
  const float z = x * x;
  float p = 0x1.756c1ep-19f;
  p = fma(p, z, 0x1.a022bcp-13f);
  p = fma(p, z, 0x1.1110e0p-7f);
  p = fma(p, z, 0x1.555556p-3f);
  const float near = fma(x * z, p, x);
  return canonical(magnitude(x) >= 1.0f ? flip(far, x) : near);
}
FUSEBOX_EXACT float cosh(float x) {
  const float q = quarter_expm1(magnitude(x)) + 0.25f;
  return canonical(fma(q, 2.0f, 0.125f / q));
}

}  // namespace exact

#endif
