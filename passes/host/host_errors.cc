#include "passes/host/host_errors.h"

namespace fusebox {

Error failed_check(const Graph& host, const Op& check) {
  const std::string why(check.attrs.string(AttrKey::kWhy));
  if (check.attrs.flag(AttrKey::kAssumed))
    return Error(ErrorCode::kAssumptionFailed,
                 "the schedule is for sizes where " + why + "; give such sizes, or leave the step out that says so",
                 host.name);
  return Error(ErrorCode::kUnalignedVector, why + "; use inputs of another layout, or a schedule without it",
               host.name);
}

Error not_computed(const Graph& host, const Op& op) {
  return Error(ErrorCode::kUnsupportedOp,
               "the host computes no `" + std::string(row_of(op.kind).text) + "` of a scalar of dtype " +
                   std::string(text(host[op.operands[0]].dtype)) + " yet; compute it on a tensor",
               "%" + host[op.results[0]].name);
}

}  // namespace fusebox
