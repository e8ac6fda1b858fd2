// The names that a kernel's parameters and buffers have in its program, as comments above the kernel's text.
//
//   kernel_comments(kernel, scheduled)   // "// @softmax: %T0 is %x, in CUDA text t0\n…"
#pragma once

#include <string>

#include "ir/graph/graph.h"

namespace fusebox::cli {

// One line for each parameter and buffer. `scheduled` is the graph that the kernel was lowered from, or null.
// `cuda_first` is for CUDA text.
std::string kernel_comments(const Graph& kernel, const Graph* scheduled, bool cuda_first);

}  // namespace fusebox::cli
