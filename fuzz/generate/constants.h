// Constants of programs and values of scalar inputs, for every dtype: the usual small ones, and those at the edges of
// what a dtype holds, which printing, encoding, folding and conversions must keep to the bit.
//
//   ConstantBits bits = draw_constant(random, Dtype::kFloat);
//   constant_class(Dtype::kFloat, bits)      // ConstantClass::kManyDigits
#pragma once

#include <optional>
#include <string_view>

#include "fuzz/base/random_source.h"
#include "ir/graph/graph.h"

namespace fusebox::fuzz {

// Half of them small numbers, few of them infinite or NaN: these leave nothing of what they are computed with.
ConstantBits draw_constant(RandomSource& random, Dtype dtype);
// What has one of the dtypes' small values: 1, 0, 2, 3, −1, −0, 0.5, 1/3.
ConstantBits draw_small_constant(RandomSource& random, Dtype dtype);
ConstantBits small_constant(Dtype dtype, double value);

enum class ConstantClass : uint8_t {
  kSmall,
  kLeast,
  kLargest,
  kNearPower,  // 2^k, or 1 beside it, k from 24 on
  kInfinite,
  kNan,
  kNanWithBits,  // another than the usual one
  kManyDigits,   // a number that half precision does not hold
  kSubnormal,
  kImaginary,
};
inline constexpr std::string_view kConstantClasses[] = {
    "small",          "least",     "largest",  "near a power of two", "infinite", "nan", "nan with other bits",
    "of many digits", "subnormal", "imaginary"};
ConstantClass constant_class(Dtype dtype, ConstantBits bits);

}  // namespace fusebox::fuzz
