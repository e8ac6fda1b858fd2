// exp, exp2, expm1, sigmoid, silu, tanh, sinh and cosh of double, as exact_exponential_float.cuh computes them.
#ifndef FUSEBOX_EXACT_EXPONENTIAL_DOUBLE_CUH
#define FUSEBOX_EXACT_EXPONENTIAL_DOUBLE_CUH

#include "elementary.cuh"

namespace exact {

// Adding this leaves the nearest integer, plus a bias, in the lowest bits.
FUSEBOX_EXACT constexpr double round_double() { return 6755399441055744.0 + 1023.0; }
// The same with twice the bias, for a power of two that has two factors.
FUSEBOX_EXACT constexpr double round_twice() { return 6755399441055744.0 + 2046.0; }

// 2^n as a product, from n + round_twice(). The first factor is normal for -2044 <= n <= 2044.
struct PowerDouble {
  double low, high;
};
FUSEBOX_EXACT PowerDouble power_of_two(double rounded) {
  const uint64_t bits = bits_of(rounded) << 51, exponent = uint64_t(0x7ff0000000000000);
  return {from_bits(bits & exponent), from_bits((bits + (uint64_t(1) << 51)) & exponent)};
}

// x - n·ln 2 for |n| < 2^11. The first product is exact.
FUSEBOX_EXACT double less_logarithms(double n, double x) {
  return fma(n, -0x1.ef35793c76730p-45, fma(n, -0x1.62e42fefa3800p-1, x));
}

// e^r - 1 for |r| <= ln 2 / 2
FUSEBOX_EXACT double expm1_polynomial(double r) {
  double p = 0x1.1f2a687bfd4c8p-29;
  p = fma(p, r, 0x1.af5d454f3bbc6p-26);
  p = fma(p, r, 0x1.27e5028320e9ap-22);
  p = fma(p, r, 0x1.71ddf9234ca08p-19);
  p = fma(p, r, 0x1.a01a0199cbb74p-16);
  p = fma(p, r, 0x1.a01a01af9e6a3p-13);
  p = fma(p, r, 0x1.6c16c16c174a7p-10);
  p = fma(p, r, 0x1.111111110f713p-7);
  p = fma(p, r, 0x1.5555555555558p-5);
  p = fma(p, r, 0x1.5555555555559p-3);
  p = fma(p, r, 0x1p-1);
  return fma(r * r, p, r);
}

FUSEBOX_EXACT double exp(double x) {
  const double y = at_most(at_least(x, -746.0), 711.0);
  const double rounded = fma(y, 0x1.71547652b82fep+0, round_twice());
  const PowerDouble power = power_of_two(rounded);
  return canonical((expm1_polynomial(less_logarithms(rounded - round_twice(), y)) + 1.0) * power.low * power.high);
}

FUSEBOX_EXACT double exp2(double x) {
  const double y = at_most(at_least(x, -1076.0), 1025.0);
  const double rounded = y + round_twice(), r = y - (rounded - round_twice());
  double p = 0x1.e8109245bbc60p-32;
  p = fma(p, r, 0x1.e6119bb1c4609p-28);
  p = fma(p, r, 0x1.b5260c5191041p-24);
  p = fma(p, r, 0x1.62bfcde0bcccbp-20);
  p = fma(p, r, 0x1.ffcbfbf985521p-17);
  p = fma(p, r, 0x1.4309130c0072bp-13);
  p = fma(p, r, 0x1.5d87fe78b38bap-10);
  p = fma(p, r, 0x1.3b2ab6fba11f7p-7);
  p = fma(p, r, 0x1.c6b08d704a0d5p-5);
  p = fma(p, r, 0x1.ebfbdff82c59cp-3);
  p = fma(p, r, 0x1.62e42fefa39efp-1);
  p = fma(p, r, 1.0);
  const PowerDouble power = power_of_two(rounded);
  return canonical(p * power.low * power.high);
}

FUSEBOX_EXACT double expm1(double x) {
  const double y = at_most(at_least(x, -40.0), 710.0);
  const double rounded = fma(y, 0x1.71547652b82fep+0, round_double()), n = rounded - round_double();
  const double scale = from_bits((bits_of(rounded) << 52) - (uint64_t(1) << 52));  // 2^(n - 1)
  const double p = expm1_polynomial(less_logarithms(n, y));
  const double half = fma(scale, p, scale - 0.5);
  return canonical(n == 0.0 ? signed_as(p, x) : half + half);
}

struct SigmoidPartsDouble {
  double reciprocal, low, high;  // the result is their product
};
FUSEBOX_EXACT SigmoidPartsDouble sigmoid_parts(double x) {
  const double y = at_most(at_least(x, -800.0), 600.0);
  const double rounded = fma(y, 0x1.71547652b82fep+0, round_twice());
  const double p = expm1_polynomial(-less_logarithms(rounded - round_twice(), y));
  const PowerDouble power = power_of_two(rounded);
  return {1.0 / (fma(power.low, power.high, p) + 1.0), power.low, power.high};
}
FUSEBOX_EXACT double sigmoid(double x) {
  const SigmoidPartsDouble s = sigmoid_parts(x);
  return canonical(s.reciprocal * s.low * s.high);
}
// NaN at -infinity, as x / (1 + e^-x) is.
FUSEBOX_EXACT double silu(double x) {
  const SigmoidPartsDouble s = sigmoid_parts(x);
  const double y = at_least(x, -800.0) * s.reciprocal * s.low * s.high;
  return canonical(x == -infinity(x) ? not_a_number(x) : y);
}

// h / (h + 1) with h = (e^2a - 1) / 2 for a = |x|; the rounding error of h + 1 counts.
FUSEBOX_EXACT double tanh(double x) {
  const double a = at_most(magnitude(x), 19.5);
  const double rounded = fma(a, 0x1.71547652b82fep+1, round_double()), n = rounded - round_double();
  const double scale = from_bits(bits_of(rounded) << 52) * 0.5;
  const double h = fma(scale, expm1_polynomial(less_logarithms(n, a + a)), scale - 0.5);
  const double below = h + 1.0, y = 1.0 / below, q = h * y;
  const double rest = fma(below - 1.0 - h, q, fma(-below, q, h));
  const double far = fma(rest, flip(y, x), flip(q, x));
  return canonical(a < 0x1p-30 ? x : far);
}

// With q = (e^a - 1) / 4: sinh a = 2q + q / (2q + 1/2), and cosh a = 2(q + 1/4) + 1 / (8(q + 1/4)).
FUSEBOX_EXACT double quarter_expm1(double a) {
  const double y = at_most(a, 710.6);
  const double rounded = fma(y, 0x1.71547652b82fep+0, round_double());
  const double scale = from_bits((bits_of(rounded) << 52) - (uint64_t(1) << 53));  // 2^(n - 2)
  return fma(scale, expm1_polynomial(less_logarithms(rounded - round_double(), y)), scale - 0.25);
}
FUSEBOX_EXACT double sinh(double x) {
  const double q = quarter_expm1(magnitude(x));
  const double far = fma(q, 2.0, q / fma(q, 2.0, 0.5));
  const double z = x * x;
  double p = 0x1.b5c899e225d36p-41;
  p = fma(p, z, 0x1.6116f49c61dc6p-33);
  p = fma(p, z, 0x1.ae646ff50dfe4p-26);
  p = fma(p, z, 0x1.71de3a3b06bdcp-19);
  p = fma(p, z, 0x1.a01a01a037269p-13);
  p = fma(p, z, 0x1.111111111101ep-7);
  p = fma(p, z, 0x1.5555555555556p-3);
  const double near = fma(x * z, p, x);
  return canonical(magnitude(x) >= 1.0 ? flip(far, x) : near);
}
FUSEBOX_EXACT double cosh(double x) {
  const double q = quarter_expm1(magnitude(x)) + 0.25;
  return canonical(fma(q, 2.0, 0.125 / q));
}

}  // namespace exact

#endif
