#include "codegen/load_groups.h"

#include <algorithm>

namespace fusebox {

bool is_between_loads(const Graph& g, const Op& op) {
  if (op.kind == OpKind::kAllocate || op.kind == OpKind::kThreadIndex || op.kind == OpKind::kThreadCount ||
      op.kind == OpKind::kPreparedDiv)
    return true;
  return demands(op.kind, kPointwise) && !demands(op.kind, kEffect | kRead | kSync | kControl) &&
         std::all_of(op.results.begin(), op.results.end(),
                     [&](ValueId v) { return g[v].dtype == Dtype::kIndex || g[v].dtype == Dtype::kBool; });
}

bool has_loop(const Graph& g, const Op& op) {
  const auto holds_one = [&](RegionId r) {
    return std::ranges::any_of(g[r].ops, [&](OpId id) { return has_loop(g, g[id]); });
  };
  return op.kind == OpKind::kFor || std::ranges::any_of(op.regions, holds_one);
}

bool has_rolled_loop(const Graph& g, RegionId region) {
  return std::ranges::any_of(g[region].ops, [&](OpId id) {
    const Op& op = g[id];
    return (op.kind == OpKind::kFor && !op.attrs.flag(AttrKey::kUnroll)) ||
           std::ranges::any_of(op.regions, [&](RegionId inner) { return has_rolled_loop(g, inner); });
  });
}

int loads_of(const Graph& g, const Op& op) {
  if (op.kind == OpKind::kCopy) {
    const MemoryType to = g.tensor_of(op.operands[0]).memory, from = g.tensor_of(op.operands.at(2)).memory;
    return to == MemoryType::kLocal && from != MemoryType::kLocal && from != MemoryType::kShared ? 1 : 0;
  }
  if (op.kind != OpKind::kIf && op.kind != OpKind::kFor) return 0;
  int loads = 0;
  for (const RegionId r : op.regions)
    for (const OpId id : g[r].ops) {
      const Op& inner = g[id];
      if (is_between_loads(g, inner)) continue;
      const int more = loads_of(g, inner);
      if (more == 0) return 0;
      loads += more;
    }
  return op.kind == OpKind::kFor ? 2 * loads : loads;
}

}  // namespace fusebox
