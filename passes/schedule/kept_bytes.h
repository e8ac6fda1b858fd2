// The bytes that a thread of a reduction loads or keeps for each element of its row: of inputs, from one pass to a later
// one, and of sums of columns beside the rows.
//
//   // softmax in f32, which keeps exp (x - max):  loaded_bytes 4, row_bytes 4, kept_bytes 4, repeated_bytes 4 (x)
//   // layer norm in f32 with a weight and a bias of each column:  loaded_bytes 12, row_bytes 4 (x)
#pragma once

#include <cstdint>

#include "passes/schedule/reduction_space.h"

namespace fusebox {

// Of all full inputs. At least 1.
int64_t loaded_bytes(const Graph& g, const ReductionSpace& space);
// Of those that differ from row to row; rows find the others in a cache. At least 1.
int64_t row_bytes(const Graph& g, const ReductionSpace& space);
// From the pass that makes them to a later one, in whole registers.
int64_t kept_bytes(const Graph& g, const ReductionSpace& space);
// The most at once, between two passes.
int64_t most_kept_bytes(const Graph& g, const ReductionSpace& space);
// Of the inputs alone that several passes need, if each pass makes anew what it needs; of each input at least `least`. At
// least 1.
int64_t repeated_bytes(const Graph& g, const ReductionSpace& space, int64_t least = 1);
// Of the widest value that several passes need. At least a register.
int64_t widest_kept_bytes(const Graph& g, const ReductionSpace& space);
// Whether a thread loses little if it computes again, in every pass, what it makes of the inputs.
bool makes_again_cheaply(const Graph& g, const ReductionSpace& space);
// The same without elementary functions, not even approximations.
bool makes_again_by_arithmetic(const Graph& g, const ReductionSpace& space);
// Of the sums of columns, in whole registers.
int64_t column_bytes(const Graph& g, const ReductionSpace& space);

}  // namespace fusebox
