// Tensors that a schedule has left behind: other tensors share an axis out among threads, and theirs is a serial loop. Loops
// spread from tensor to tensor over one op each (spread in ir/step), while a scheduler knows axes by classes that are joined
// over all ops together. Where an op reads two inputs, and each gives it one axis that the reference has by another way, the
// loops reach it over one of them alone.
//
//   // y = u (from x, over n) * v (from q, over m);  g = index_select x by q: [n, m]
//   left_behind(scheduled)   // %g.i1: "%g would walk …"
#pragma once

#include <optional>

#include "ir/graph/graph.h"
#include "ir/table/error.h"

namespace fusebox {

// Why the schedule is not worth a kernel; nothing if it leaves no tensor behind. Short loops are none.
std::optional<Error> left_behind(const Graph& scheduled);

}  // namespace fusebox
