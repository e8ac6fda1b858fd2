// Division by a number that stays the same for a whole launch, as a multiplication and a shift. The host prepares the
// divisor once (the op prepare_div); each thread then needs no division (the op prepared_div).
//
// The scheme is Granlund and Montgomery's, "Division by invariant integers using multiplication" (PLDI 1994), figure
// 4.1, for 32 bits. With s the least shift where 2^s >= d, the multiplier is m = floor(2^32 (2^s - d) / d) + 1, and
// a / d = (floor(m a / 2^32) + a) >> s for every a in [0, 2^32). The sum stays below 2^32 where a is below 2^31.
//
//   prepared_quotient(1000, prepare_division(7)) == 142
#pragma once

#include <cstdint>

namespace fusebox {

// 2^32 shift + multiplier of a divisor. Division by 0 gives 0, and so does division by 2^31 or more. A negative divisor
// is not prepared: it is taken for 0.
constexpr int64_t prepare_division(int64_t divisor) {
  constexpr int64_t kGivesZero = int64_t{31} << 32;
  if (divisor <= 0 || divisor >= int64_t{1} << 31) return kGivesZero;
  int64_t shift = 0;
  while ((int64_t{1} << shift) < divisor) ++shift;
  const uint64_t rest = (uint64_t{1} << shift) - static_cast<uint64_t>(divisor);
  const uint64_t multiplier = (rest << 32) / static_cast<uint64_t>(divisor) + 1;
  return shift << 32 | static_cast<int64_t>(multiplier);
}

// The quotient of a dividend in [0, 2^31). The result of any other dividend is the same everywhere, and means nothing.
constexpr int64_t prepared_quotient(int64_t dividend, int64_t prepared) {
  const auto a = static_cast<uint32_t>(dividend);
  const auto high = static_cast<uint32_t>((uint64_t{a} * static_cast<uint32_t>(prepared)) >> 32);
  return static_cast<int32_t>((high + a) >> (static_cast<uint64_t>(prepared) >> 32 & 31));
}

}  // namespace fusebox
