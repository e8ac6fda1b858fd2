// The verifier's rule for one default or recorded input of a program.
//
//   NameIndex values(g);
//   for (const InputSpec& spec : specs) check_spec(g, values, spec);
#pragma once

#include "ir/graph/name_index.h"
#include "ir/module/module.h"

namespace fusebox {

// The spec names an input of the program, and its own numbers fit together. Whether they fit the input is not asked.
// Throws kUnknownName, kInvalidGraph, kBadInputSpec.
void check_spec(const Graph& g, NameIndex& values, const InputSpec& spec);

}  // namespace fusebox
