// pow of float, by 2^(y·log2 |x|) with the logarithm and the product in two floats each.
#ifndef FUSEBOX_EXACT_POWER_FLOAT_CUH
#define FUSEBOX_EXACT_POWER_FLOAT_CUH

#include "exact_logarithm_float.cuh"

namespace exact {

struct PairFloat {
  float high, low;
};
// log2 of a positive number, to about 2^-34. With u = 2f / (2 + f), log(1 + f) = u + u³/12 + u⁵/80 + …
FUSEBOX_EXACT PairFloat log2_pair(float x) {
  const LogarithmParts l = logarithm_parts(x);
  const float f = l.fraction, y = reciprocal_in_range(f + 2.0f), u = (f + f) * y;
  const float difference = f - u, u_low = fma(-u, f, difference + difference) * y;
  // The square of u, its cube, and the factor of the cube.
  const float square = u * u, square_low = fma(u, u, -square) + (u + u) * u_low;
  const float cube = square * u, cube_low = fma(square, u, -cube) + fma(square, u_low, square_low * u);
  const float rest = square * fma(square, fma(square, 0x1.59ee06p-11f, 0x1.a5bbfap-9f), 0x1.27770ep-6f);
  const float factor = rest + 0x1.ec709ep-4f, factor_low = 0x1.ec709ep-4f - factor + rest - 0x1.e2fe02p-31f;
  const float tail = cube * factor;
  const float tail_low = fma(cube, factor, -tail) + fma(cube, factor_low, cube_low * factor);
  const float head = u * 0x1.715476p+0f;
  const float head_low = fma(u, 0x1.715476p+0f, -head) + fma(u, 0x1.4ae0c0p-26f, u_low * 0x1.715476p+0f);
  const float first = l.exponent + head, first_low = l.exponent - first + head;
  const float second = first + tail, second_low = first - second + tail;
  const float low = first_low + (second_low + (head_low + tail_low));
  const float high = second + low;
  return {high, second - high + low};
}

FUSEBOX_EXACT float pow(float x, float y) {
  const float a = magnitude(x), b = magnitude(y);
  PairFloat l = log2_pair(a);
  l.high = a == 0.0f ? -infinity(x) : a == infinity(x) ? a : l.high;
  const float product = y * l.high, z = at_most(at_least(product, -250.0f), 250.0f);
  const float z_low = product == z ? fma(y, l.high, -product) + y * l.low : 0.0f;
  constexpr float kRound = 12582912.0f + 254.0f;
  const float rounded = z + kRound, r = z - (rounded - kRound) + z_low;
  float p = 0x1.416b5ep-13f;
  p = fma(p, r, 0x1.5f082ep-10f);
  p = fma(p, r, 0x1.3b2de0p-7f);
  p = fma(p, r, 0x1.c6af7cp-5f);
  p = fma(p, r, 0x1.ebfbdcp-3f);
  p = fma(p, r, 0x1.62e430p-1f);
  p = fma(p, r, 1.0f);
  const uint32_t bits = bits_of(rounded) << 22;
  const float size = p * from_bits(bits & 0x7f800000u) * from_bits((bits + 0x00400000u) & 0x7f800000u);
  // From 2^24 on every number is an even integer.
  const float bounded = b < 0x1p24f ? b : 0x1p24f;
  const int32_t whole = int32_t(bounded);
  const bool is_whole = float(whole) == bounded, is_odd = is_whole && (whole & 1) != 0;
  const float result = is_odd ? flip(size, x) : size;
  const bool is_nan = x != x || y != y || (x < 0.0f && a != infinity(x) && !is_whole);
  return x == 1.0f || y == 0.0f || (a == 1.0f && b == infinity(y)) ? 1.0f : is_nan ? not_a_number(x) : result;
}

}  // namespace exact

#endif
