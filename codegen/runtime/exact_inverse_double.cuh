// asin, acos, atan, atan2, asinh, acosh and atanh of double, as exact_inverse_float.cuh computes them.
#ifndef FUSEBOX_EXACT_INVERSE_DOUBLE_CUH
#define FUSEBOX_EXACT_INVERSE_DOUBLE_CUH

#include "exact_logarithm_double.cuh"

namespace exact {

// (asin(s) - s) / s³ for z = s² <= 1/4
FUSEBOX_EXACT double asin_polynomial(double z) {
  double p = 0x1.05910c7d08674p-5;
  p = fma(p, z, -0x1.0a3768b5296cap-6);
  p = fma(p, z, 0x1.40321b7dd18b2p-6);
  p = fma(p, z, 0x1.ab794503291e9p-8);
  p = fma(p, z, 0x1.8ecc7d605197cp-7);
  p = fma(p, z, 0x1.c6fc61b970a96p-7);
  p = fma(p, z, 0x1.1c6bf274ec041p-6);
  p = fma(p, z, 0x1.6e89f3359cd03p-6);
  p = fma(p, z, 0x1.f1c72c4333e04p-6);
  p = fma(p, z, 0x1.6db6db425de8fp-5);
  p = fma(p, z, 0x1.333333336ea66p-4);
  p = fma(p, z, 0x1.555555555538fp-3);
  return p;
}

// Above 1/2, asin x = π/2 - 2·asin(√((1 - x) / 2)), and acos x is the second term.
FUSEBOX_EXACT double asin(double x) {
  const double a = magnitude(x);
  const bool is_near = !(a > 0.5);
  const double half = fma(a, -0.5, 0.5), s = is_near ? a : root(half), z = is_near ? a * a : half;
  const double rest = s * z * asin_polynomial(z);
  // The rounding error of π/2 and that of the difference count.
  const double difference = fma(-2.0, s, 0x1.921fb54442d18p+0);
  const double lost = fma(-2.0, s, 0x1.921fb54442d18p+0 - difference) - fma(2.0, rest, -0x1.1a62633145c07p-54);
  const double far = difference + lost;
  const double y = is_near ? s + rest : far;
  return canonical(y * flip(1.0, x));
}
FUSEBOX_EXACT double acos(double x) {
  const double a = magnitude(x);
  const bool is_near = !(a > 0.5);
  const double half = fma(a, -0.5, 0.5), s = is_near ? x : root(half), z = is_near ? x * x : half;
  const double rest = s * z * asin_polynomial(z);
  const double near = 0x1.921fb54442d18p+0 - (s + (rest - 0x1.1a62633145c07p-54));
  const double twice = (s + rest) * 2.0;
  const double far = x < 0.0 ? 0x1.921fb54442d18p+1 - (twice - 0x1.1a62633145c07p-53) : twice;
  return canonical(is_near ? near : far);
}

// (atan(s) - s) / s³ for z = s² <= 1
FUSEBOX_EXACT double atan_polynomial(double z) {
  double p = 0x1.bc078cb8ecb31p-17;
  p = fma(p, z, -0x1.3f46408150f3cp-13);
  p = fma(p, z, 0x1.b40ce904da62ap-11);
  p = fma(p, z, -0x1.7a46328898155p-9);
  p = fma(p, z, 0x1.d7c5241c6a781p-8);
  p = fma(p, z, -0x1.c79813ae34b02p-7);
  p = fma(p, z, 0x1.68411204972bep-6);
  p = fma(p, z, -0x1.e9fd7149db1f3p-6);
  p = fma(p, z, 0x1.2c2f65e1967e6p-5);
  p = fma(p, z, -0x1.59a47ca81597ap-5);
  p = fma(p, z, 0x1.82db05882be6ap-5);
  p = fma(p, z, -0x1.ae5e7fa2394ebp-5);
  p = fma(p, z, 0x1.e1bba926c7b74p-5);
  p = fma(p, z, -0x1.110e515da54bdp-4);
  p = fma(p, z, 0x1.3b1366a04488bp-4);
  p = fma(p, z, -0x1.745d11aeeb1f1p-4);
  p = fma(p, z, 0x1.c71c717fd512fp-4);
  p = fma(p, z, -0x1.249249237f6a5p-3);
  p = fma(p, z, 0x1.99999999955b7p-3);
  p = fma(p, z, -0x1.5555555555526p-2);
  return p;
}

// Above 1, π/2 - atan(1 / x).
FUSEBOX_EXACT double atan(double x) {
  const double a = magnitude(x);
  const bool is_far = a > 1.0;
  const double s = is_far ? 1.0 / a : a, z = s * s;
  const double y = fma(s * z, atan_polynomial(z), s);
  return canonical((is_far ? 0x1.921fb54442d18p+0 - (y - 0x1.1a62633145c07p-54) : y) * flip(1.0, x));
}

// atan(y / x) in the quadrant of (x, y), from the quotient of the smaller magnitude and the larger.
FUSEBOX_EXACT double atan2(double y, double x) {
  const double a = magnitude(x), b = magnitude(y);
  const bool is_steep = b > a, is_equal = a == b;
  const double quotient = (is_steep ? a : b) / (is_steep ? b : a);
  // 0 / 0 counts as 0, infinity / infinity as 1; NaN stays.
  const double s = is_equal ? (a == 0.0 ? 0.0 : 1.0) : quotient, z = s * s;
  const double first = fma(s * z, atan_polynomial(z), s);
  const double second = is_steep ? 0x1.921fb54442d18p+0 - (first - 0x1.1a62633145c07p-54) : first;
  const double third = bits_of(x) >> 63 != 0 ? 0x1.921fb54442d18p+1 - (second - 0x1.1a62633145c07p-53) : second;
  return canonical(x != x || y != y ? not_a_number(x) : flip(third, y));
}

// log1p of a small number plus what its square root gives; log(2a) for large ones.
FUSEBOX_EXACT double asinh(double x) {
  const double a = magnitude(x);
  const bool is_large = a > 0x1p28;
  const double b = is_large ? 1.0 : a, z = b * b;
  const double near = log1p(fma(z, 1.0 / (1.0 + root(fma(b, b, 1.0))), b));
  const double y = is_large ? log(a) + 0x1.62e42fefa39efp-1 : near;
  return canonical(y * flip(1.0, x));
}
// log1p(z + low) is log1p(z) + low / (1 + z), where `low` is what the rounding of z lost.
FUSEBOX_EXACT double acosh(double x) {
  const bool is_large = x > 0x1p28;
  const double t = is_large ? 1.0 : x - 1.0;
  const double square = fma(t, t, t + t), s = root(square), z = t + s;
  const double square_lost = fma(t, t, t + t - square);
  const double s_lost = s > 0.0 ? (fma(-s, s, square) + square_lost) / (s + s) : 0.0;
  const double near = log1p(z) + (s - z + t + s_lost) / (1.0 + z);
  const double y = is_large ? log(x) + 0x1.62e42fefa39efp-1 : near;
  return canonical(x < 1.0 ? not_a_number(x) : y);
}
// With z = 2a / (1 - a), the residual of the division over 1 - a and over 1 + z is the residual over 1 + a.
FUSEBOX_EXACT double atanh(double x) {
  const double a = magnitude(x), below = 1.0 - a, z = (a + a) / below;
  const double residual = fma(-z, below, a + a) - z * (1.0 - below - a);
  const double y = log1p(z);
  return canonical(0.5 * (a < 1.0 ? y + residual / (1.0 + a) : y) * flip(1.0, x));
}

}  // namespace exact

#endif
