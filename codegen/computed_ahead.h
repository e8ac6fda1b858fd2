// Which values of a kernel a compiler can compute ahead: those that are made of constants and of the indices of loops with
// constant bounds.
//
//   for 0, 24, 1 { index %i   %v = philox 7_u64, 0_u64, %i, 0_u32   …   %x = load %T0 at %i }   →   %i and %v, not %x
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

/// @return for each value of the kernel, whether it can be computed ahead once the loops around it are written out.
std::vector<bool> computed_ahead(const Graph& kernel);

}  // namespace fusebox
