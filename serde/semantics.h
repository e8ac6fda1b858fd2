// The last phase of decoding: the meaning of programs, steps and segmentations, on values that passed structure.h.
//
// Throws kInvalidField for a step that does not follow its row of step_table.inc, or the error that ir/verify/verify.h
// finds, with the field before its place (`module.graphs[0] %x`, `module @f`). In a bundle the recorded inputs are those
// of the fusion, in its order, and each stage holds programs of its level. It does not ask whether a step applies to a
// graph.
#pragma once

#include "serde/bundle.h"
#include "serde/place.h"

namespace fusebox {

void check_meaning(const Module& m, const Place& place);
void check_meaning(const Bundle& b, const Place& place);
void check_meaning(const CacheRecord& r, const Place& place);

}  // namespace fusebox
