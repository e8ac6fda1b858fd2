// Marks the loops of a kernel that must be unrolled so that a thread's buffers lie in registers.
//
// A register has no address. A buffer of a thread lies in registers only if every index into it is a constant once the
// loops around are unrolled. So a loop with a constant count is unrolled if its index is part of such an index, and if
// the buffer may fit registers at all. Other loops are left as they are.
//
//   for 0, 8, 1 { index %i   load %row at %i … }   →   for 0, 8, 1 unroll { … }
//
// A strip of such a loop, which begins at the index of the loop around it and has a constant length, is unrolled too.
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

void unroll_local(Graph& kernel);

}  // namespace fusebox
