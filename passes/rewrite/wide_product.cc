#include "passes/rewrite/wide_product.h"

#include <set>

#include "ir/infer/product_call.h"

namespace fusebox {

bool has_numbers_of_wide_product(const Graph& g, const Rewriter& r, ValueId v) {
  std::set<ValueId> seen;
  std::vector<ValueId> open = {v};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    if (!at || !g[at].def || !seen.insert(at).second) continue;
    const OpId def = g[at].def;
    const Op& op = g[def];
    if (may_stay_wide(g, def)) return true;
    const bool is_copy = op.kind == OpKind::kSet || op.kind == OpKind::kSegmentSet || demands(op.kind, kMetadata) ||
                         (op.kind == OpKind::kCast && g[op.operands[0]].dtype == g[at].dtype);
    if (!is_copy && op.kind != OpKind::kWhere) continue;
    for (size_t i = 0; i < op.operands.size(); ++i) open.push_back(r.operand(def, i));
  }
  return false;
}

}  // namespace fusebox
