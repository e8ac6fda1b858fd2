#include "codegen/computed_ahead.h"

#include <algorithm>

#include "passes/kernel/loop_count.h"

namespace fusebox {

std::vector<bool> computed_ahead(const Graph& g) {
  std::vector<bool> is_ahead(g.values.size());
  const auto is_known = [&](ValueId v) { return v && (g.is_constant(v) || is_ahead[v.index]); };
  for (const OpId id : ops_in_order(g)) {
    const Op& op = g[id];
    if (op.kind == OpKind::kFor) {
      is_ahead[g[op.regions[0]].index.index] = known_count(g, op) && is_known(op.operands[0]);
    } else if (op.regions.empty() && !op.operands.empty() && !demands(op.kind, kEffect | kRead | kSync | kControl)) {
      const bool is_made = std::ranges::all_of(op.operands, is_known);
      for (const ValueId v : op.results) is_ahead[v.index] = is_made;
    }
  }
  return is_ahead;
}

}  // namespace fusebox
