// identity_moves skips chains of ops that move elements and end where they began. It also makes two permutes one.
//
// The walk goes from a value to the values that it is made from. `map[i]` is the axis there that is axis i of the
// value, or −1 if an op added the axis. If the map is the identity and the axes are the same, both values are equal at
// every element. A reshape has no such map, but it keeps the elements in order. If every op of a chain keeps the order,
// equal axes are enough.
#include <numeric>
#include <optional>

#include "ir/domain/axis_relation.h"
#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {
namespace {

using AxisMap = std::vector<int>;

size_t rank(const Graph& g, ValueId v) { return rank_of(g, v); }

bool is_zero(const Graph& g, ValueId v) { return g.is_constant(v) && constant_integer(g, v) == 0; }

std::span<const ValueId> slot(const Op& op, size_t s) {
  const auto ranges = slot_ranges(*row_of(op.kind).format, op.operands.size());
  if (!ranges) return {};
  return std::span(op.operands).subspan((*ranges)[s].begin, (*ranges)[s].count);
}

// For each axis of the result, the operand's axis. Nothing if the op does more than place axes: if it stretches or cuts
// an axis, computes, joins, or reads at other places.
std::optional<AxisMap> axis_map(const Graph& g, const Rewriter& r, const Op& op) {
  if (op.kind == OpKind::kSet ? !op.attrs.empty() : !demands(op.kind, kMetadata)) return std::nullopt;
  if (op.kind == OpKind::kStrideOrder || op.kind == OpKind::kReshape) return std::nullopt;
  const ValueId x = op.operands[0];
  const auto to = logical_without_reductions(g, g.tensor_of(op.results[0]));
  const auto old = logical_without_reductions(g, g.tensor_of(x));
  const auto relation = axis_relation(g, op, 0);
  AxisMap map(to.size(), -1);
  for (size_t i = 0; i < relation.size(); ++i) {
    switch (relation[i].relation) {
      case AxisRelation::kDropped:
        continue;
      case AxisRelation::kSame:
        break;
      case AxisRelation::kBroadcast:
        // Of extent 1, the operand's axis may be an iteration to its other readers, and the result's one element.
        if (g[to[relation[i].result]].iter_type == IterType::kSymbolic) return std::nullopt;
        [[fallthrough]];
      case AxisRelation::kResized:
        if (!r.same_axis(to[relation[i].result], old[i])) return std::nullopt;
        break;
      case AxisRelation::kNone:
      case AxisRelation::kReduced:
      case AxisRelation::kRegrouped:
      case AxisRelation::kWithin:
      case AxisRelation::kJoined:
      case AxisRelation::kChosen:
        return std::nullopt;
    }
    map[relation[i].result] = static_cast<int>(i);
  }
  // A slice or pad that keeps the extents is its whole operand if it begins at 0.
  if (family_of(op.kind) == AxisRule::kResized)
    for (ValueId v : slot(op, op.kind == OpKind::kSlice ? 1 : 2))
      if (!is_zero(g, v)) return std::nullopt;
  return map;
}

// Whether the elements stay in the operand's order.
bool keeps_order(OpKind kind, const std::optional<AxisMap>& map) {
  if (kind == OpKind::kReshape) return true;
  // An axis that is dropped, or added without being expanded, has one element.
  if (kind != OpKind::kSet && kind != OpKind::kSqueeze && kind != OpKind::kBroadcast) return false;
  return map.has_value();
}

bool is_identity(const AxisMap& map) {
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] != static_cast<int>(i)) return false;
  return true;
}

// The farthest value up the chain that is equal at every element.
ValueId origin(const Graph& g, const Rewriter& r, ValueId v) {
  ValueId best, at = v;
  AxisMap map(rank(g, v));
  std::iota(map.begin(), map.end(), 0);
  bool has_map = true, in_order = true;
  while (g[at].def) {
    const Op& op = g[g[at].def];
    if (op.results.size() != 1 || op.operands.empty() || !op.operands[0] || !g.is_tensor(op.operands[0])) break;
    const bool is_move = demands(op.kind, kMetadata) || op.kind == OpKind::kSet;
    if (!is_move || op.kind == OpKind::kStrideOrder || op.kind == OpKind::kCat) break;
    const auto step = axis_map(g, r, op);
    in_order = in_order && keeps_order(op.kind, step);
    has_map = has_map && step;
    if (!has_map && !in_order) break;
    at = r.now(op.operands[0]);
    if (has_map)
      for (int& i : map) i = i < 0 ? -1 : (*step)[static_cast<size_t>(i)];
    const bool same = in_order || (is_identity(map) && map.size() == rank(g, at));
    if (same && r.fits(v, at)) best = at;
  }
  return best;
}

bool is_permute(const Graph& g, ValueId v) { return g[v].def && g[g[v].def].kind == OpKind::kPermute; }

void skip_moves(Graph& g, Rewriter& r, const RewriteOptions& options) {
  for (OpId id : g[Graph::body()].ops) {
    if (!demands(g[id].kind, kMetadata) && g[id].kind != OpKind::kSet) continue;
    const ValueId v = g[id].results[0];
    if (!g.is_tensor(v)) continue;
    if (const ValueId by = origin(g, r, v)) {
      r.replace(v, by);
      continue;
    }
    const ValueId inner = r.operand(id, 0);
    if (g[id].kind != OpKind::kPermute || !is_permute(g, inner) || !r.take(v)) continue;
    const auto outer_map = axis_map(g, r, g[id]), inner_map = axis_map(g, r, g[g[inner].def]);
    std::vector<int64_t> dims;
    const bool is_reversed = *outer_map != *inner_map && options.defects.has(Defect::kPermutesComposed);
    const AxisMap &first = is_reversed ? *outer_map : *inner_map, &then = is_reversed ? *inner_map : *outer_map;
    for (int i : then) dims.push_back(first[static_cast<size_t>(i)]);
    g[id].attrs.set(AttrKey::kDims, dims);
    r.set_operands(id, {r.operand(g[inner].def, 0)});
  }
}

}  // namespace

bool identity_moves(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, skip_moves); }

}  // namespace fusebox
