// Places of the tensors that a call keeps between its kernels, in one block of memory.
//
// Invariant: two tensors that share a byte are never in use at the same step.
#pragma once

#include <span>

#include "ir/table/defect.h"
#include "replay/run/resolved_call.h"

namespace fusebox {

// A tensor is in use from before the step `begin` until before the step `end` of the call.
struct TensorLife {
  static constexpr size_t kToTheEnd = SIZE_MAX;
  uint32_t slot = 0;
  size_t begin = 0, end = kToTheEnd;
};

// Gives each tensor that the call allocates for itself the first free place, in the order of `lives`, which begin in order.
void place_in_arena(ResolvedCall& call, std::span<const TensorLife> lives, const Defects& defects = {});

}  // namespace fusebox
