// What the parameters and buffers of a kernel are called in the program that it came from, as comments above its text.
//
//   kernel_comments(kernel, scheduled)   // "// @softmax: %T0 is %x, in CUDA text t0\n…"
#pragma once

#include <string>

#include "ir/graph/graph.h"

namespace fusebox::cli {

// One line for each parameter and buffer. `scheduled`: what the kernel was lowered from, or null. `cuda_first`: for
// CUDA text.
std::string kernel_comments(const Graph& kernel, const Graph* scheduled, bool cuda_first);

}  // namespace fusebox::cli
