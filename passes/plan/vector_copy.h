// A vectorized copy: a `set` whose innermost loop is vectorized moves that many elements at once. Either side may be in
// global, shared or local memory.
//
// The index of each side must be the loop plus a rest that the width divides. If extents and strides do not prove that,
// the launch checks it, and it also checks the address of the memory.
//
//   c = set x (bf16), c.i0 split by 8 → o, v, v vectorized   →   width 8, from 8*o in x to 0 in the registers of c
#pragma once

#include <map>
#include <optional>
#include <set>

#include "passes/plan/kernel_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

struct VectorNeeds {
  std::set<Divisibility> divisibilities;
  std::map<ValueId, int64_t> alignments;  // by storage: bytes
};

bool is_vector_copy(const KernelPlan& plan, OpId op);
// The facts that a vectorized copy of so many elements of the innermost loop needs, as if the op were one.
// Nothing if a side cannot be shown to lie side by side. The loop's extent is a multiple of the width.
std::optional<VectorNeeds> needs_of_width(const KernelPlan& plan, StatementView& view, int64_t width);
// Throws kIllegalVectorize, naming the loop.
VectorCopy plan_vector_copy(const KernelPlan& plan, StatementView& view, VectorNeeds& needs);

}  // namespace fusebox
