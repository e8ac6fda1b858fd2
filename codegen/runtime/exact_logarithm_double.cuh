// log, log2, log10 and log1p of double.
//
// x = 2^e·(1 + f) with 1 + f in [√½, √2). With s = f / (2 + f): log(1 + f) = 2s + s·R(s²) = f - f²/2 + s·(f²/2 + R), which
// rounds less (as in Sun's fdlibm).
#ifndef FUSEBOX_EXACT_LOGARITHM_DOUBLE_CUH
#define FUSEBOX_EXACT_LOGARITHM_DOUBLE_CUH

#include "elementary.cuh"

namespace exact {

struct LogarithmPartsDouble {
  double exponent, fraction;
};
// For positive numbers.
FUSEBOX_EXACT LogarithmPartsDouble logarithm_parts(double x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000, kFraction = 0x000fffffffffffff;
  const bool is_subnormal = x < 0x1p-1022;
  const uint64_t bits = bits_of(is_subnormal ? x * 0x1p54 : x) + (kOne - kRootHalf);
  // The exponent, as the low bits of a number.
  const double exponent = from_bits((bits >> 52) | uint64_t(0x4330000000000000)) - (0x1p52 + 1023.0);
  return {exponent - (is_subnormal ? 54.0 : 0.0), from_bits((bits & kFraction) + kRootHalf) - 1.0};
}
// The logarithms of what is no positive number, infinity among them; `result` for the others.
FUSEBOX_EXACT double logarithm_or(double x, double result) {
  const double special = fma(x, infinity(x), infinity(x));
  const double y = bits_of(x) >= uint64_t(0x7ff0000000000000) ? special : result;
  return canonical(x == 0.0 ? -infinity(x) : y);
}

// log(1 + f) - f + f²/2, given f²/2
FUSEBOX_EXACT double log_rest(double f, double half_square) {
  const double s = f / (2.0 + f), u = s + s, z = u * u;
  double p = 0x1.0f0e04ba16c23p-20;
  p = fma(p, z, 0x1.0f673f450ef04p-18);
  p = fma(p, z, 0x1.3b2024b14e6d9p-16);
  p = fma(p, z, 0x1.745ce1c7e0069p-14);
  p = fma(p, z, 0x1.c71c724b68f8bp-12);
  p = fma(p, z, 0x1.24924924397eap-9);
  p = fma(p, z, 0x1.9999999999d11p-7);
  p = fma(p, z, 0x1.5555555555555p-4);
  return s * fma(z + z, p, half_square);
}

FUSEBOX_EXACT double log(double x) {
  const LogarithmPartsDouble l = logarithm_parts(x);
  const double f = l.fraction, half_square = 0.5 * f * f;
  const double rest = fma(l.exponent, 0x1.ef35793c76730p-45, log_rest(f, half_square));
  return logarithm_or(x, fma(l.exponent, 0x1.62e42fefa3800p-1, f - (half_square - rest)));
}

// log(1 + f) in two parts.
struct LogarithmPairDouble {
  double high, low;
};
FUSEBOX_EXACT LogarithmPairDouble log_pair(double f) {
  const double half = 0.5 * f, half_square = half * f, high = f - half_square;
  return {high, f - high - half_square + (log_rest(f, half_square) - fma(half, f, -half_square))};
}
// The factor 1 / log(base) has two parts, too.
FUSEBOX_EXACT double log2(double x) {
  const LogarithmPartsDouble l = logarithm_parts(x);
  const LogarithmPairDouble y = log_pair(l.fraction);
  const double product = y.high * 0x1.71547652b82fep+0, sum = l.exponent + product;
  double low = fma(y.low, 0x1.71547652b82fep+0, y.high * 0x1.777d0ffda0d24p-56);
  low += fma(y.high, 0x1.71547652b82fep+0, -product);
  return logarithm_or(x, sum + (l.exponent - sum + product + low));
}
FUSEBOX_EXACT double log10(double x) {
  const LogarithmPartsDouble l = logarithm_parts(x);
  const LogarithmPairDouble y = log_pair(l.fraction);
  const double e = l.exponent, first = e * 0x1.34413509f79ffp-2, second = y.high * 0x1.bcb7b1526e50ep-2;
  const double sum = first + second;
  double low = fma(y.low, 0x1.bcb7b1526e50ep-2, y.high * 0x1.95355baaafad3p-57);
  low += fma(y.high, 0x1.bcb7b1526e50ep-2, -second);
  low += fma(e, -0x1.9dc1da994fd21p-59, fma(e, 0x1.34413509f79ffp-2, -first));
  return logarithm_or(x, sum + (first - sum + second + low));
}

// The exponent is that of 1 + x. The fraction is made of x itself: 2^-e·x + (2^-e - 1). Its sign stays that of x for
// zeros.
FUSEBOX_EXACT double log1p(double x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000, kExponent = 0xfff0000000000000;
  const double sum = 1.0 + x;
  const uint64_t raised = bits_of(sum) + (kOne - kRootHalf), power = (raised & kExponent) - kOne;
  const uint64_t quadruple = uint64_t(0x4010000000000000) - power;  // the bits of 4·2^-e, where 2^-e may be subnormal
  const double f = from_bits(bits_of(x) - power) - fma(from_bits(quadruple), -0.25, 1.0);
  const double minus_e = (0x1p52 + 1023.0) - from_bits((raised >> 52) | uint64_t(0x4330000000000000));
  const double half_square = 0.5 * f * f;
  const double rest = fma(minus_e, -0x1.ef35793c76730p-45, log_rest(f, half_square));
  const double result = fma(minus_e, -0x1.62e42fefa3800p-1, f - (half_square - rest));
  const double special = fma(sum, infinity(x), infinity(x));
  const double y = bits_of(sum) >= uint64_t(0x7ff0000000000000) ? special : result;
  return canonical(sum == 0.0 ? -infinity(x) : y);
}

}  // namespace exact

#endif
