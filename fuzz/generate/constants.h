// Draws constants and scalar inputs of every dtype: small ones and the edges of the dtype. Printing, encoding, folding
// and conversions must keep them to the bit.
//
//   ConstantBits bits = draw_constant(random, Dtype::kFloat);
//   constant_class(Dtype::kFloat, bits)      // ConstantClass::kManyDigits
#pragma once

#include <optional>
#include <string_view>

#include "fuzz/base/random_source.h"
#include "ir/graph/graph.h"

namespace fusebox::fuzz {

// Half are small. Few are infinite or NaN, because these hide everything else in a result.
ConstantBits draw_constant(RandomSource& random, Dtype dtype);
// One of 1, 0, 2, 3, −1, −0, 0.5, 1/3, or the closest that the dtype has.
ConstantBits draw_small_constant(RandomSource& random, Dtype dtype);
ConstantBits small_constant(Dtype dtype, double value);

enum class ConstantClass : uint8_t {
  kSmall,
  kLeast,
  kLargest,
  kNearPower,  // 2^k or a neighbour, k ≥ 24
  kInfinite,
  kNan,
  kNanWithBits,  // NaN with other bits than the usual one
  kManyDigits,   // half precision cannot hold it
  kSubnormal,
  kImaginary,
};
inline constexpr std::string_view kConstantClasses[] = {
    "small",          "least",     "largest",  "near a power of two", "infinite", "nan", "nan with other bits",
    "of many digits", "subnormal", "imaginary"};
ConstantClass constant_class(Dtype dtype, ConstantBits bits);

}  // namespace fusebox::fuzz
