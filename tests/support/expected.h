// The expected result of a scalar op: the bits for integers and truth values; for floats a number and the tolerance in
// units in the last place.
//
//   matches({.value = 1.0 / 3, .ulps = 2}, Dtype::kFloat, from_double(Dtype::kFloat, 0.33333334))
#pragma once

#include <array>
#include <cmath>
#include <complex>

#include "ir/scalar/numeric.h"

namespace fusebox::testing {

struct Expected {
  std::complex<long double> value = 0;
  ConstantBits bits = {};  // for integers and truth values
  bool is_bits = false;
  double ulps = 0;       // of the result's dtype; for complex numbers, relative to the modulus
  bool is_known = true;  // false: the reference has no answer here
};

using Operands = std::array<ConstantBits, 4>;

inline Expected expect_bits(Dtype dtype, ConstantBits bits) {
  return {.bits = canonical_bits(dtype, bits), .is_bits = true};
}
inline Expected expect_truth(bool value) { return {.bits = {value, 0}, .is_bits = true}; }

inline double ulp_of(Dtype dtype, double value) {
  int digits = 53, lowest = -1074;
  switch (real_of(dtype)) {
    case Dtype::kHalf:
      digits = 11, lowest = -24;
      break;
    case Dtype::kBfloat16:
      digits = 8, lowest = -133;
      break;
    case Dtype::kFloat8E4m3:
      digits = 4, lowest = -9;
      break;
    case Dtype::kFloat8E5m2:
      digits = 3, lowest = -16;
      break;
    case Dtype::kFloat:
      digits = 24, lowest = -149;
      break;
    default:  // any other: is compared as a double
      break;
  }
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, value == 0 ? lowest : std::max(exponent - digits, lowest));
}

inline bool matches(const Expected& e, Dtype dtype, ConstantBits got) {
  if (!e.is_known) return true;
  if (e.is_bits) return canonical_bits(dtype, got) == e.bits;
  const auto near = [&](long double want, double is, double size) {
    if (std::isnan(want)) return std::isnan(is);
    const ConstantBits rounded = from_double(real_of(dtype), static_cast<double>(want));
    const double best = to_double(real_of(dtype), rounded);
    if (is == best || (std::isnan(best) && std::isnan(is))) return true;  // overflow gives NaN in float8 e4m3
    if (std::isnan(is) || std::isinf(is)) return false;
    return std::abs(static_cast<long double>(is) - want) <= e.ulps * ulp_of(dtype, size);
  };
  if (!is_complex(dtype)) return near(e.value.real(), to_double(dtype, got), static_cast<double>(e.value.real()));
  const std::complex<double> is = to_complex(dtype, got);
  const double size = static_cast<double>(std::abs(e.value));
  return near(e.value.real(), is.real(), size) && near(e.value.imag(), is.imag(), size);
}

}  // namespace fusebox::testing
