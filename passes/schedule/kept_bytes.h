// The bytes that a thread of a reduction keeps for each element of its row: from one pass to a later one, and of sums of
// columns beside the rows.
//
//   // softmax in f32, which keeps exp (x - max):  kept_bytes 4, repeated_bytes 4 (x)
#pragma once

#include <cstdint>

#include "passes/schedule/reduction_space.h"

namespace fusebox {

// From the pass that makes them to a later one, in whole registers.
int64_t kept_bytes(const Graph& g, const ReductionSpace& space);
// The most at once, between two passes.
int64_t most_kept_bytes(const Graph& g, const ReductionSpace& space);
// Of the inputs alone that several passes need, if each pass makes anew what it needs. At least 1.
int64_t repeated_bytes(const Graph& g, const ReductionSpace& space);
// Of the sums of columns, in whole registers.
int64_t column_bytes(const Graph& g, const ReductionSpace& space);

}  // namespace fusebox
