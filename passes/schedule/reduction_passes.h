// Gives every pass over the reduced axes its own copies of what it reads, so that nothing is kept from pass to pass. A
// pass then reads its inputs again, from the L2 cache where they fit, or from the registers that keep them.
//
//   // softmax: recompute e for q -> e2, d for e2 -> d2, xf for d -> xf2, xf for d2 -> xf3
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/schedule/fresh_names.h"
#include "passes/schedule/reduction_space.h"
#include "passes/schedule/step_draft.h"

namespace fusebox {

// The steps go to `steps`, and the copies' names come from `names`. `cached` gives the copies that `cache_after` has
// made of inputs, by the input's name; with `keeps_inputs`, all passes read the one copy of an input. Returns the names of all
// copies that stand for the same tensor: for an input's copy those that `recompute` made of it, and the first itself.
std::map<std::string, std::vector<std::string>> split_passes(const Graph& g, const ReductionSpace& space,
                                                             const std::map<std::string, std::string>& cached,
                                                             bool keeps_inputs, FreshNames& names, StepDraft& steps);

// Whether loops spread from the reference to all full tensors after split_passes. The copies of two passes then have only
// inputs in common, so a pass that reads no input with all reduced axes, such as one of random numbers, is left behind.
bool are_passes_connected(const Graph& g, const ReductionSpace& space);

}  // namespace fusebox
