// Operands that find mistakes in scalar ops: every pair of boundary values of a dtype, completed with others.
//
//   for (const Operands& operands : scalar_inputs(Dtype::kInt8)) …
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "ir/scalar/numeric.h"

namespace fusebox::testing {

inline std::vector<ConstantBits> boundary_values(Dtype dtype) {
  std::vector<ConstantBits> values;
  if (is_boolean(dtype)) return {{0, 0}, {1, 0}};
  if (is_integer(dtype)) {
    for (const int64_t v : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, -1, -2, -3, -7, -64, -128})
      values.push_back(from_int64(dtype, v));
    const uint64_t high = uint64_t{1} << (bits(dtype) - 1);
    for (const uint64_t v : {high, high - 1, high + 1, high - 3, ~uint64_t{0}})
      values.push_back(canonical_bits(dtype, {v, 0}));
    return values;
  }
  if (is_complex(dtype)) {
    for (const double re : {0.0, 1.0, -1.0, 0.5, -2.5, 0.003, 7.0, -0.125})
      for (const double im : {0.0, 1.0, -1.0, 0.25, -3.5, 0.002, 6.0, -0.75})
        values.push_back(from_complex(dtype, {re, im}));
    return values;
  }
  for (const double v :
       {0.0,  1.0,  0.5,  0.25,  0.75,  1.5, 2.0, 2.5,  3.0, 3.5,          7.25, 10.0, 0.999, 1.001, 0.1,    0.03,
        1e-3, 60.0, 88.0, 100.0, 400.0, 1e4, 6e4, 1e-6, 1e9, 2147483648.0, 1e19, 1e30, 1e-30, 1e-40, 1e-310, 1e300})
    for (const double sign : {1.0, -1.0}) values.push_back(from_double(dtype, sign * v));
  const uint64_t top = uint64_t{1} << (bits(dtype) - 1);
  // The smallest values and those around the largest: infinity and NaN, if the dtype has them.
  for (const uint64_t v : {uint64_t{1}, uint64_t{2}, top | 1, top - 1, top - 2}) values.push_back({v, 0});
  for (const double v : {HUGE_VAL, -HUGE_VAL, std::nan("")}) values.push_back(from_double(dtype, v));
  return values;
}

inline std::vector<std::array<ConstantBits, 4>> scalar_inputs(Dtype dtype) {
  const std::vector<ConstantBits> values = boundary_values(dtype);
  std::vector<std::array<ConstantBits, 4>> inputs;
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < values.size(); ++j)
      inputs.push_back(
          {values[i], values[j], values[(i + 3 * j + 1) % values.size()], values[(2 * i + j) % values.size()]});
  return inputs;
}

// Writes an element's bytes to memory.
inline void put_element(Dtype dtype, ConstantBits bits, char* to) {
  const size_t size = static_cast<size_t>(size_bytes(dtype));
  if (is_complex(dtype)) {
    __builtin_memcpy(to, &bits.low, size / 2);
    __builtin_memcpy(to + size / 2, &bits.high, size / 2);
  } else {
    __builtin_memcpy(to, &bits.low, size);
  }
}
inline ConstantBits get_element(Dtype dtype, const char* from) {
  const size_t size = static_cast<size_t>(size_bytes(dtype));
  ConstantBits bits;
  if (is_complex(dtype)) {
    __builtin_memcpy(&bits.low, from, size / 2);
    __builtin_memcpy(&bits.high, from + size / 2, size / 2);
  } else {
    __builtin_memcpy(&bits.low, from, size);
  }
  return canonical_bits(dtype, bits);
}

}  // namespace fusebox::testing
