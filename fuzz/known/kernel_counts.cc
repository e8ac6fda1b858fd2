#include "fuzz/known/kernel_counts.h"

#include "ir/table/families.h"

namespace fusebox::fuzz {

KernelCounts counts_of(const Graph& kernel) {
  KernelCounts counts;
  for (OpId id : ops_in_order(kernel)) {
    const Op& op = kernel[id];
    const bool compares =
        op.kind == OpKind::kLt || op.kind == OpKind::kLe || op.kind == OpKind::kGe || op.kind == OpKind::kGt;
    counts.conditions += compares && kernel[op.operands[0]].dtype == Dtype::kIndex;
    counts.quotients += op.kind == OpKind::kFloorDiv || op.kind == OpKind::kFloorMod;
    counts.prepared += op.kind == OpKind::kPreparedDiv;
    counts.barriers += op.kind == OpKind::kBarrier || op.kind == OpKind::kGridBarrier || is_of_cluster(op.kind);
    counts.loops += op.kind == OpKind::kFor;
  }
  return counts;
}

}  // namespace fusebox::fuzz
