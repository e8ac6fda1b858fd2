// Vectorized copies: a `set` with a vectorized innermost loop becomes one access of that width, between global or shared
// memory and local memory, or between any two.
//
// Each side needs an index that is the loop plus a rest that the width divides. The launch checks what extents and
// strides do not prove, together with the address of the memory.
#pragma once

#include <map>
#include <set>

#include "passes/plan/kernel_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

struct VectorNeeds {
  std::set<Divisibility> divisibilities;
  std::map<ValueId, int64_t> alignments;  // by storage: bytes
};

bool is_vector_copy(const KernelPlan& plan, OpId op);
// Throws kIllegalVectorize, naming the loop.
VectorCopy plan_vector_copy(const KernelPlan& plan, StatementView& view, VectorNeeds& needs);

}  // namespace fusebox
