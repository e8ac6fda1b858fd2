// Finds the floats of a kernel that are worth preparing as divisors (runtime/division.cuh), and the loops that divide by them
// and may run twice.
//
//   for 0, 8, 1 { index %i              // %s is a divisor: the loop divides by it, and does not change it.
//     %x = load %a at %i                // The loop may run twice: it writes no buffer that it reads.
//     %q = truediv %x, %s
//     store %b at %i, %q
//   }
#pragma once

#include <set>

#include "ir/graph/graph.h"

namespace fusebox {

// Floats that are divided by in a loop that does not change them, by divisions that are exact and by fast ones. Powers of two
// are not among them: the compiler multiplies instead.
struct Divisors {
  std::set<ValueId> exact, fast;
};
Divisors find_divisors(const Graph& kernel);

// Whether the region of a loop divides exactly by one of these values and may run twice. It may if it holds loads, stores,
// scalar ops and conditions alone and writes nothing that it reads; two parameters may be the same memory. `used` gets the
// divisors.
bool may_divide_twice(const Graph& kernel, RegionId loop, const std::set<ValueId>& divisors, std::set<ValueId>& used);

}  // namespace fusebox
