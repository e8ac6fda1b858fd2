// Finds the loads of a kernel that stand next to each other, so that a GPU issues them together.
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// Whether the op neither loads nor uses what was loaded: indices, conditions, buffers.
bool is_between_loads(const Graph& g, const Op& op);
// Whether the op is a loop or holds one.
bool has_loop(const Graph& g, const Op& op);
// Whether a loop that is not marked `unroll` stands in the region.
bool has_rolled_loop(const Graph& g, RegionId region);
// The copies from global memory to a thread's that the op makes, at least; 0 if it does anything else.
int loads_of(const Graph& g, const Op& op);

}  // namespace fusebox
