#include "passes/schedule/column_values.h"

#include <algorithm>

#include "ir/table/op.h"
#include "passes/schedule/arithmetic.h"

namespace fusebox {
namespace {

// Whether an instruction or two compute an element, or none does: it is no more than a register is worth.
bool costs_little(OpKind kind) {
  return demands(kind, kMetadata) || kind == OpKind::kFull || kind == OpKind::kCast || is_arithmetic(kind);
}

}  // namespace

bool is_of_whole_columns(const Graph& g, const ReductionSpace& space, ValueId v) {
  if (!g.is_tensor(v) || space.is_full(v)) return false;
  const auto& axes = g.tensor_of(v).logical;
  return std::ranges::all_of(space.kept, [&](DomainId kept) {
    return std::ranges::any_of(
        axes, [&](DomainId d) { return g[d].iter_type == IterType::kIteration && space.axis_of(d) == kept; });
  });
}

std::vector<ValueId> made_once_for_columns(const Graph& g, const ReductionSpace& space) {
  std::vector<bool> costs(g.values.size());  // whether something on the way from reductions and inputs does
  std::vector<ValueId> result;
  const auto readers = uses(g);
  for (OpId id : tensor_ops(g)) {
    const Op& op = g[id];
    const ValueId v = op.results[0];
    if (demands(op.kind, kReduction) || space.is_full(v)) continue;
    costs[v.index] = !costs_little(op.kind) ||
                     std::ranges::any_of(op.operands, [&](ValueId from) { return from && costs[from.index]; });
    if (!is_of_whole_columns(g, space, v)) continue;
    const bool is_read_at_places = std::ranges::any_of(readers[v.index], [&](OpId reader) {
      return g[reader].kind != OpKind::kOutput && space.is_full(g[reader].results[0]);
    });
    if (costs[v.index] && is_read_at_places && op.results.size() == 1) result.push_back(v);
  }
  return result;
}

int64_t once_bytes(const Graph& g, const ReductionSpace& space) {
  int64_t bytes = 0;
  for (ValueId v : made_once_for_columns(g, space)) bytes += size_bytes(g[v].dtype);
  for (ValueId v : inputs(g))
    if (is_of_whole_columns(g, space, v)) bytes += size_bytes(g[v].dtype);
  return bytes;
}

}  // namespace fusebox
