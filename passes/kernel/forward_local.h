// Store-to-load forwarding for local buffers. A buffer of one element becomes the stored scalar if it is stored once
// and read only where that store has run.
#pragma once

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

// `allocate T1 of 1; store T1 at 0, v; w = load T1 at 0` → v replaces w, and the buffer is gone. True: changed.
bool forward_local(Graph& kernel, const Defects& defects = {});

}  // namespace fusebox
