// pow of double, by 2^(y·log2 |x|) with the logarithm and the product in two doubles each.
#ifndef FUSEBOX_EXACT_POWER_DOUBLE_CUH
#define FUSEBOX_EXACT_POWER_DOUBLE_CUH

#include "exact_logarithm_double.cuh"

namespace exact {

struct PairDouble {
  double high, low;
};
// log2 of a positive number, to about 2^-67. With u = 2f / (2 + f), log(1 + f) = u + u³/12 + u⁵/80 + …
FUSEBOX_EXACT PairDouble log2_pair(double x) {
  const LogarithmPartsDouble l = logarithm_parts(x);
  const double f = l.fraction, y = 1.0 / (f + 2.0), u = (f + f) * y;
  const double difference = f - u, u_low = fma(-u, f, difference + difference) * y;
  // The square of u, its cube, and the factor of the cube.
  const double square = u * u, square_low = fma(u, u, -square) + (u + u) * u_low;
  const double cube = square * u, cube_low = fma(square, u, -cube) + fma(square, u_low, square_low * u);
  double p = 0x1.61f1823565d63p-22;
  p = fma(p, square, 0x1.58fcba392ace0p-20);
  p = fma(p, square, 0x1.8a09b89b30de0p-18);
  p = fma(p, square, 0x1.c68ee95b46227p-16);
  p = fma(p, square, 0x1.0c9a853afa9b5p-13);
  p = fma(p, square, 0x1.484b13d6ace37p-11);
  p = fma(p, square, 0x1.a61762a7aeddep-9);
  p = fma(p, square, 0x1.2776c50ef9bfcp-6);
  const double rest = square * p;
  const double factor = rest + 0x1.ec709dc3a03fdp-4,
               factor_low = 0x1.ec709dc3a03fdp-4 - factor + rest + 0x1.d27f05548af0cp-58;
  const double tail = cube * factor;
  const double tail_low = fma(cube, factor, -tail) + fma(cube, factor_low, cube_low * factor);
  const double head = u * 0x1.71547652b82fep+0;
  const double head_low =
      fma(u, 0x1.71547652b82fep+0, -head) + fma(u, 0x1.777d0ffda0d24p-56, u_low * 0x1.71547652b82fep+0);
  const double first = l.exponent + head, first_low = l.exponent - first + head;
  const double second = first + tail, second_low = first - second + tail;
  const double low = first_low + (second_low + (head_low + tail_low));
  const double high = second + low;
  return {high, second - high + low};
}

FUSEBOX_EXACT double pow(double x, double y) {
  const double a = magnitude(x), b = magnitude(y);
  PairDouble l = log2_pair(a);
  l.high = a == 0.0 ? -infinity(x) : a == infinity(x) ? a : l.high;
  const double product = y * l.high, z = at_most(at_least(product, -2040.0), 2040.0);
  const double z_low = product == z ? fma(y, l.high, -product) + y * l.low : 0.0;
  constexpr double kRound = 6755399441055744.0 + 2046.0;
  const double rounded = z + kRound, r = z - (rounded - kRound) + z_low;
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
  const uint64_t bits = bits_of(rounded) << 51, exponent = uint64_t(0x7ff0000000000000);
  const double size = p * from_bits(bits & exponent) * from_bits((bits + (uint64_t(1) << 51)) & exponent);
  // From 2^53 on every number is an even integer.
  const double bounded = b < 0x1p53 ? b : 0x1p53;
  const int64_t whole = int64_t(bounded);
  const bool is_whole = double(whole) == bounded, is_odd = is_whole && (whole & 1) != 0;
  const double result = is_odd ? flip(size, x) : size;
  const bool is_nan = x != x || y != y || (x < 0.0 && a != infinity(x) && !is_whole);
  return x == 1.0 || y == 0.0 || (a == 1.0 && b == infinity(y)) ? 1.0 : is_nan ? not_a_number(x) : result;
}

}  // namespace exact

#endif
