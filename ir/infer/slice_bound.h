// How a slice takes a bound. Inference clamps bounds to the axis, but not one size, so that the slice's extent keeps it. The
// launch checks that this size lies in the axis.
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// Whether a slice takes this bound as it is, although in some runs it may lie beyond the axis. The extent is none where no
// scalar holds it.
//
//   is_unclamped_bound(g, n, m)   // %n = size; %m = size: true.  %m = add %n, 1: false
bool is_unclamped_bound(const Graph& g, ValueId bound, ValueId extent);

}  // namespace fusebox
