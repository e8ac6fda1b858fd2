#include "codegen/hoist.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace fusebox {
namespace {

// Computes scalars from scalars. Thread indices and counts are the same wherever they are read.
bool is_pure_scalar(const Graph& g, const Op& op) {
  if (op.kind == OpKind::kThreadIndex || op.kind == OpKind::kThreadCount) return true;
  if (!demands(op.kind, kPointwise) || demands(op.kind, kEffect | kRead | kSync | kControl | kSignature)) return false;
  const auto is_scalar = [&](ValueId v) { return v && g[v].kind == ValueKind::kScalar; };
  return std::all_of(op.operands.begin(), op.operands.end(), is_scalar) &&
         std::all_of(op.results.begin(), op.results.end(), is_scalar);
}

struct Sharing {
  using Key = std::tuple<OpKind, std::vector<ValueId>, std::vector<Dtype>, std::vector<int64_t>>;
  using Known = std::map<Key, std::vector<ValueId>>;

  // Attributes as numbers; ops with others are left alone.
  bool key_of(const Op& op, Key& key) const {
    std::vector<int64_t> attrs;
    for (const Attr& a : op.attrs.list()) {
      attrs.push_back(static_cast<int64_t>(a.key));
      if (const auto* number = std::get_if<int64_t>(&a.value))
        attrs.push_back(*number);
      else if (const auto* dtype = std::get_if<Dtype>(&a.value))
        attrs.push_back(static_cast<int64_t>(*dtype));
      else
        return false;
    }
    std::vector<Dtype> dtypes;
    for (ValueId r : op.results) dtypes.push_back(graph[r].dtype);
    key = {op.kind, op.operands, std::move(dtypes), std::move(attrs)};
    return true;
  }

  void walk(RegionId region) {
    std::vector<Known::iterator> of_this_region;
    std::vector<OpId> kept;
    for (const OpId id : graph[region].ops) {
      Op& op = graph[id];
      for (ValueId& v : op.operands)
        if (v) v = stands_for[v.index];
      for (const RegionId inner : op.regions) walk(inner);
      Key key;
      if (is_pure_scalar(graph, op) && key_of(op, key)) {
        const auto [at, is_new] = known.emplace(std::move(key), op.results);
        if (!is_new) {
          for (size_t i = 0; i < op.results.size(); ++i) stands_for[op.results[i].index] = at->second[i];
          changed = true;
          continue;
        }
        of_this_region.push_back(at);
      }
      kept.push_back(id);
    }
    graph[region].ops = std::move(kept);
    for (const auto& at : of_this_region) known.erase(at);
  }

  Graph& graph;
  std::vector<ValueId> stands_for;
  Known known;  // what is visible here
  bool changed = false;
};

struct Motion {
  // Depth of the region that defines a value; 0 for the body, constants too.
  bool is_outside(const Op& op, int depth) const {
    return std::all_of(op.operands.begin(), op.operands.end(),
                       [&](ValueId v) { return !v || depth_of[v.index] < depth; });
  }

  // Returns the ops that leave the region, in order; `is_loop` says whether they may.
  std::vector<OpId> walk(RegionId region, int depth, bool is_loop) {
    if (graph[region].index) depth_of[graph[region].index.index] = depth;
    std::vector<OpId> kept, leaving;
    for (const OpId id : std::vector<OpId>(graph[region].ops)) {
      for (const RegionId inner : std::vector<RegionId>(graph[id].regions)) {
        // What leaves an inner loop is looked at again as an op of this region.
        for (const OpId out : walk(inner, depth + 1, graph[id].kind == OpKind::kFor))
          place(out, depth, is_loop, kept, leaving);
      }
      place(id, depth, is_loop, kept, leaving);
    }
    graph[region].ops = std::move(kept);
    changed = changed || !leaving.empty();
    return leaving;
  }

  void place(OpId id, int depth, bool is_loop, std::vector<OpId>& kept, std::vector<OpId>& leaving) {
    const bool leaves = is_loop && is_pure_scalar(graph, graph[id]) && is_outside(graph[id], depth);
    (leaves ? leaving : kept).push_back(id);
    for (const ValueId r : graph[id].results) depth_of[r.index] = leaves ? depth - 1 : depth;
  }

  Graph& graph;
  std::vector<int> depth_of;
  bool changed = false;
};

}  // namespace

bool share_common_scalars(Graph& kernel) {
  Sharing sharing{kernel, {}, {}, false};
  for (size_t i = 0; i < kernel.values.size(); ++i) sharing.stands_for.push_back(ValueId(i));
  sharing.walk(Graph::body());
  if (sharing.changed) kernel = compact(kernel);
  return sharing.changed;
}

bool move_invariants_out(Graph& kernel) {
  Motion motion{kernel, std::vector<int>(kernel.values.size(), 0), false};
  motion.walk(Graph::body(), 0, false);
  if (motion.changed) kernel = compact(kernel);
  return motion.changed;
}

bool hoist(Graph& kernel) {
  bool changed = false;
  while (share_common_scalars(kernel) | move_invariants_out(kernel)) changed = true;
  return changed;
}

}  // namespace fusebox
