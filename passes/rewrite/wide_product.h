// Which values may have the numbers of a product that its plan does not round. A library may hand a product of 16 bits on
// as it was added up (ir/infer/product_call.h). Then the next op that rounds is the only one that does, so that a rewrite
// may not leave it out, although it changes no number of 16 bits.
#pragma once

#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {

// Whether `v` is a product that may stay wide, or a copy, a choice or a part of one: other rewrites leave these out.
bool has_numbers_of_wide_product(const Graph& g, const Rewriter& r, ValueId v);

}  // namespace fusebox
