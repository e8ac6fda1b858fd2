// Store-to-load forwarding for local buffers: a buffer of one element that is stored once and read only where that
// store has been made becomes the stored scalar itself.
#pragma once

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

// `allocate T1 of 1; store T1 at 0, v; w = load T1 at 0` → v in w's place, no buffer. True: changed.
bool forward_local(Graph& kernel, const Defects& defects = {});

}  // namespace fusebox
