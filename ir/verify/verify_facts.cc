// The verifier's rules for facts of a schedule, and for ops that rely on one.
#include <algorithm>

#include "ir/infer/infer_rules.h"
#include "ir/verify/verify_rules.h"

namespace fusebox {
namespace {

[[noreturn]] void refuse(const Op& op, ErrorCode code, const std::string& message) {
  throw Error(code, op_text(op.kind) + " " + message);
}

}  // namespace

void check_fact(const Graph& g, OpId id) {
  const Op& op = g[id];
  if (g.level == Level::kMath)
    refuse(op, ErrorCode::kWrongLevel, "states a fact of a schedule; apply the step to a fusion instead");
  check_low_level({g, op.kind, op.operands, op.attrs, {}});
  const auto& body = g[Graph::body()].ops;
  if (std::find(body.begin(), body.end(), id) == body.end())
    refuse(op, ErrorCode::kInvalidGraph, "stands outside the body");
  if (op.kind == OpKind::kAssume) return;
  for (OpId other : body)
    if (other != id && g[other].kind == op.kind)
      refuse(op, ErrorCode::kInvalidGraph, "stands twice; a kernel has one of them");
}

void check_in_cluster(const Graph& g, OpId id) {
  if (!has_in_body(g, OpKind::kCluster))
    refuse(g[id], ErrorCode::kInvalidGraph, "stands in a kernel whose blocks form no clusters; add the op `cluster`");
}

}  // namespace fusebox
