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
#include <vector>

#include "passes/plan/kernel_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

// The largest power of two that planning knows to divide a size or a stride. A larger one is a fact that no plan relies on.
constexpr int64_t kMostDivisor = 64;

struct VectorNeeds {
  std::set<Divisibility> divisibilities;
  std::map<ValueId, int64_t> alignments;  // by storage: bytes
};

bool is_vector_copy(const KernelPlan& plan, OpId op);
// What a vectorized copy needs, as if the op of the view were one.
class CopyNeeds {
 public:
  CopyNeeds(const KernelPlan& plan, StatementView& view);
  // The facts that so many elements of the innermost loop need. Nothing if a side cannot be shown to lie side by side.
  // The loop's extent is a multiple of the width.
  std::optional<VectorNeeds> of_width(int64_t width) const;

 private:
  const KernelPlan& plan_;
  StatementView& view_;
  Form source_, target_;
  std::vector<DomainCheck> checks_;  // that depend on the innermost loop
};

// Throws kIllegalVectorize, naming the loop.
VectorCopy plan_vector_copy(const KernelPlan& plan, StatementView& view, VectorNeeds& needs);

}  // namespace fusebox
