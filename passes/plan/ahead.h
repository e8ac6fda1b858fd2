// Loads that run ahead of the loop that reads them: a thread waits for memory while it computes an earlier iteration.
//
// The step `circular_buffer %xc depth d` asks for it. %xc copies an input to registers, in a serial loop in which it is
// read. The loop then keeps d - 1 more buffers. They are filled before the first iteration. Each iteration takes what the
// oldest of them holds, and starts the load for d - 1 iterations later:
//
//   for i = 0 … n { xc = x[i]; y[i] = f(xc) }        with depth 2 becomes
//
//   if 0 < n: next = x[0]
//   for i = 0 … n { xc = next; if i + 1 < n: next = x[i + 1]; y[i] = f(xc) }
#pragma once

#include "passes/plan/kernel_plan.h"

namespace fusebox {

// The tensors whose loads run ahead of the loop.
std::vector<ValueId> tensors_ahead(const KernelPlan& plan, uint32_t node);
// The children of the loop that do nothing but load these, by position.
std::vector<size_t> children_ahead(const KernelPlan& plan, uint32_t node);
// Throws kUnsupportedSchedule at a circular buffer that is none of these.
void check_ahead(const KernelPlan& plan);

}  // namespace fusebox
