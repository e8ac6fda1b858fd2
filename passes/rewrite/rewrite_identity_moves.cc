// identity_moves: chains of ops that move elements and end where they began, and two permutes that are one.
//
// Walking from a value to what it is made from, `map[i]` is the axis there that axis i of the value is, or −1 where an
// op added it. Where the map is the identity and the axes are the same, the two are equal at every element. Reshapes
// have no such map, but keep the elements in order: if every op of a chain does, the same axes are enough.
#include <numeric>
#include <optional>

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

size_t axis_of(int64_t a, size_t n) { return static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(n) : a); }

// For each axis of the result, the operand's; nothing if the op does more than place axes: one that stretches or cuts
// an axis is none of these.
std::optional<AxisMap> axis_map(const Graph& g, const Rewriter& r, const Op& op) {
  const ValueId x = op.operands[0];
  const size_t n = rank(g, op.results[0]), from = rank(g, x);
  AxisMap map(n, -1);
  switch (op.kind) {
    case OpKind::kSet:
      if (!op.attrs.empty()) return std::nullopt;
      break;
    case OpKind::kPermute: {
      const auto dims = op.attrs.ints(AttrKey::kDims);
      for (size_t i = 0; i < n; ++i) map[i] = static_cast<int>(axis_of(dims[i], n));
      return map;
    }
    case OpKind::kBroadcast: {
      const auto mask = op.attrs.ints(AttrKey::kMask);
      int next = 0;
      for (size_t i = 0; i < n; ++i)
        if (mask[i] == 0) map[i] = next++;
      return map;
    }
    case OpKind::kBroadcastInDim: {
      const auto dims = op.attrs.ints(AttrKey::kDims);
      const auto to = logical_without_reductions(g, g.tensor_of(op.results[0]));
      const auto old = logical_without_reductions(g, g.tensor_of(x));
      for (size_t k = 0; k < dims.size(); ++k) {
        const size_t i = axis_of(dims[k], n);
        if (!r.same_axis(to[i], old[k])) return std::nullopt;
        map[i] = static_cast<int>(k);
      }
      return map;
    }
    case OpKind::kSqueeze: {
      std::vector<bool> dropped(from);
      for (int64_t a : op.attrs.ints(AttrKey::kAxes)) dropped[axis_of(a, from)] = true;
      size_t next = 0;
      for (size_t i = 0; i < from; ++i)
        if (!dropped[i]) map[next++] = static_cast<int>(i);
      return map;
    }
    case OpKind::kExpand:
      if (!r.same_axes(op.results[0], x)) return std::nullopt;
      break;
    case OpKind::kSlice:
    case OpKind::kPad:
      // From 0 on, and of the same extents: all of it.
      for (ValueId v : slot(op, op.kind == OpKind::kSlice ? 1 : 2))
        if (!is_zero(g, v)) return std::nullopt;
      if (!r.same_axes(op.results[0], x)) return std::nullopt;
      break;
    default:  // any other: stays, which is never wrong
      return std::nullopt;
  }
  std::iota(map.begin(), map.end(), 0);
  return map;
}

// One element after the other, as in the operand.
bool keeps_order(OpKind kind, const std::optional<AxisMap>& map) {
  if (kind == OpKind::kReshape) return true;
  // An axis that is dropped or added without being expanded has one element.
  if (kind != OpKind::kSet && kind != OpKind::kSqueeze && kind != OpKind::kBroadcast) return false;
  return map.has_value();
}

bool is_identity(const AxisMap& map) {
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] != static_cast<int>(i)) return false;
  return true;
}

// The farthest value up the chain that is the same at every element.
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
