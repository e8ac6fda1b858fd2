// Rounding to a floating dtype and the size of its last place, on doubles.
//
//   round_to(Dtype::kBfloat16, 1.001) == 1.0;  ulp_of(Dtype::kFloat, 1.5) == 0x1p-23
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "ir/scalar/numeric.h"
#include "ir/table/families.h"
#include "replay/data/overflow.h"

namespace fusebox::aten {

inline constexpr double kInfinity = INFINITY;

using fusebox::round_to;

// The distance of neighbouring numbers of the dtype at this magnitude. Infinity for infinities and NaN.
inline double ulp_of(Dtype dtype, double value) {
  const FloatFormat& own = format_of(dtype);
  const FloatFormat& format = own.is_none() ? format_of(Dtype::kDouble) : own;
  const int biased = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff);
  if (biased == 0x7ff) return kInfinity;
  const int exponent = std::max(biased - 1023, format.least_exponent()) - format.mantissa_bits;
  if (exponent >= -1022) return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
  return std::bit_cast<double>(uint64_t{1} << (exponent + 1074));
}

// The least number that has all digits.
inline double least_normal(Dtype dtype) { return std::ldexp(1.0, format_of(dtype).least_exponent()); }

// Half the distance of neighbouring numbers at 1 in the dtype that sums of this dtype are accumulated in. It is doubled
// in double, because the reference is computed in double too.
inline double unit_roundoff(Dtype declared) {
  return real_of(compute_dtype(declared)) == Dtype::kDouble ? 0x1p-52 : 0x1p-24;
}
// Whether the elements of an operand are rounded on their way into the accumulator.
inline bool loses_digits(Dtype operand, Dtype declared) {
  return size_bytes(real_of(operand)) > size_bytes(real_of(compute_dtype(declared)));
}
inline double accumulator_overflow(Dtype declared) { return overflow_of(real_of(compute_dtype(declared))); }

// The last place of the largest double. It lies between that number and infinity, which have one notional value.
inline constexpr double kLastDouble = 0x1p971;

inline double notional(double v, double overflow) { return std::isinf(v) ? std::copysign(overflow, v) : v; }

// An operand's element: the interval in which a right implementation may have it.
struct Operand {
  double v = 0, b = 0;
  double lo = 0, hi = 0;  // [v − b, v + b], extended to infinity if it reaches the dtype's overflow
  bool zero_sign = true;  // the sign of a zero is known

  bool exact() const { return b == 0; }
  bool contains(double x) const { return lo <= x && x <= hi; }
};
// Whether every implementation has NaN here.
inline bool is_certain_nan(const Operand& x) { return x.v != x.v && x.exact(); }

inline Operand operand(double v, double b, double overflow, bool zero_sign) {
  Operand o{v, b, v, v, zero_sign};
  if (b == 0) return o;
  const double n = notional(v, overflow);
  o.lo = n - b;
  o.hi = n + b;
  if (o.lo >= overflow) o.lo = kInfinity;
  if (o.hi >= overflow) o.hi = kInfinity;
  if (o.lo <= -overflow) o.lo = -kInfinity;
  if (o.hi <= -overflow) o.hi = -kInfinity;
  return o;
}

// The image of the operands' intervals under an exact function. NaN at an end means that anything may come out.
struct Image {
  double lo, hi;
  bool jump = false;     // a discontinuity lies within
  bool outside = false;  // no operand lies in the function's domain: NaN for certain
};
inline constexpr Image kAnything = {NAN, NAN, false, false};
inline constexpr Image kOutside = {NAN, NAN, false, true};

struct Rounded {
  double value, bound;
};

// Rounds the value in double, with its image and the implementation's own error, to the declared dtype. Rounding is
// monotone, so the ends round too. `exact` says that the operands are exact; then the image is the value.
inline Rounded finish(Dtype dtype, double overflow, double y, const Image& image, double error, bool exact) {
  const double v = round_to(dtype, y);
  if (image.outside || (exact && error == 0)) return {v, 0};
  if (error == kInfinity) return {v, kInfinity};
  if (exact && y != y) return {v, 0};
  const double low = image.lo - error, high = image.hi + error;
  const double lo = round_to(dtype, low), hi = round_to(dtype, high);
  if (v != v || lo != lo || hi != hi) return {v, kInfinity};
  const double n = notional(v, overflow);
  double b = std::max({notional(hi, overflow) - n, n - notional(lo, overflow), 0.0});
  if (b == 0 && (lo != v || hi != v)) b = kLastDouble;
  // The differences themselves are rounded.
  return {v, b == 0 ? 0.0 : b * (1 + 0x1p-50)};
}

}  // namespace fusebox::aten
