// Tells which ops of a fusion have no kernel, so that ATen computes them.
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// Whether no kernel has the op, so that it is a segment of its own, by ATen: ops with the demand kLibrary, and elementary
// functions of complex tensors.
bool is_library(const Graph& g, const Op& op);

}  // namespace fusebox
