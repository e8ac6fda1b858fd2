// The groups of a reshape: which axes of its operand merge and split into which axes of its result, as their extents tell.
//
//   reshape_groups({m, n}, {m·n})       // {2, 1}
//   reshape_groups({6, n}, {2, 3, n})   // {1, 2, 1, 1}
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/scalar/scalar_form.h"

namespace fusebox {

// Pairs of counts: so many axes merge and split into so many axes. No size is the constant 1. Returns nothing if the
// products are not provably equal.
std::optional<std::vector<int64_t>> reshape_groups(std::span<const ScalarForm> from, std::span<const ScalarForm> to);

// A quotient without the factors that dividend and divisor share. Both are products with a positive coefficient.
struct ReducedQuotient {
  ScalarForm dividend, divisor;
};
// Nothing if one of them is no such product. A factor that is left out may be 0 at run time.
//
//   reduced_quotient(n·c·h, 32·n·h)   // c / 32
std::optional<ReducedQuotient> reduced_quotient(const ScalarForm& dividend, const ScalarForm& divisor);

}  // namespace fusebox
