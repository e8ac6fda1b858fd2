// common_subexpressions: two ops with the same kind, operands, attributes and results become one.
#include <algorithm>
#include <map>
#include <tuple>

#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {
namespace {

// x · y and y · x have the same bits; min and max of two zeros need not.
bool is_commutative(OpKind kind) {
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kEq:
    case OpKind::kNe:
    case OpKind::kLogicalAnd:
    case OpKind::kLogicalOr:
    case OpKind::kBitwiseAnd:
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
      return true;
    default:  // any other: keeps the order of its operands, which is never wrong
      return false;
  }
}

void merge_equal_ops(Graph& g, Rewriter& r, const RewriteOptions& options) {
  std::map<std::pair<OpKind, std::vector<ValueId>>, std::vector<OpId>> seen;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    // A segment_set marks its place, so it is not merged.
    if (demands(op.kind, kSignature | kEffect) || op.kind == OpKind::kSegmentSet || !op.regions.empty()) continue;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operands.size(); ++i) operands.push_back(r.operand(id, i));
    if (is_commutative(op.kind)) std::sort(operands.begin(), operands.end());
    auto& same = seen[{op.kind, operands}];
    const bool stays =
        std::any_of(op.results.begin(), op.results.end(), [&](ValueId v) { return !r.is_replaceable(v); });
    const auto earlier = std::find_if(stays ? same.end() : same.begin(), same.end(), [&](OpId other) {
      const Op& o = g[other];
      if (o.results.size() != op.results.size()) return false;
      if (!(o.attrs == op.attrs) && !options.defects.has(Defect::kCommonIgnoresAttributes)) return false;
      for (size_t i = 0; i < o.results.size(); ++i)
        if (!r.fits(op.results[i], o.results[i])) return false;
      return true;
    });
    if (earlier == same.end()) {
      same.push_back(id);
      continue;
    }
    for (size_t i = 0; i < op.results.size(); ++i) r.replace(op.results[i], g[*earlier].results[i]);
  }
}

}  // namespace

bool common_subexpressions(Graph& g, const RewriteOptions& options) {
  return rewrite_readers(g, options, merge_equal_ops);
}

}  // namespace fusebox
