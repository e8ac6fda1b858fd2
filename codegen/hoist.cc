#include "codegen/hoist.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace fusebox {
namespace {

// Whether the op computes scalars from scalars alone. Thread indices and counts are the same wherever they are read.
bool is_pure_scalar(const Graph& g, const Op& op) {
  if (op.kind == OpKind::kThreadIndex || op.kind == OpKind::kThreadCount || op.kind == OpKind::kPreparedDiv ||
      op.kind == OpKind::kPhilox)
    return true;
  if (!demands(op.kind, kPointwise) || demands(op.kind, kEffect | kRead | kSync | kControl | kSignature)) return false;
  const auto is_scalar = [&](ValueId v) { return v && g[v].kind == ValueKind::kScalar; };
  return std::all_of(op.operands.begin(), op.operands.end(), is_scalar) &&
         std::all_of(op.results.begin(), op.results.end(), is_scalar);
}

struct Sharing {
  using Key = std::tuple<OpKind, std::vector<ValueId>, std::vector<Dtype>, std::vector<int64_t>>;
  using Known = std::map<Key, std::vector<ValueId>>;

  // An op's key, with its attributes as numbers. Returns false for an op with another attribute, which is left alone.
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
    if (defects.has(Defect::kSharedScalarScope)) return;
    for (const auto& at : of_this_region) known.erase(at);
  }

  Graph& graph;
  std::vector<ValueId> stands_for;
  Known known;  // ops visible here
  bool changed = false;
  const Defects& defects;
};

struct Motion {
  // Where an op stands: `depth` of its region, and of the innermost loop around it (0: none).
  struct Scope {
    int depth = 0, loop = 0;
  };

  // Walks a region and returns the ops that leave it, in order.
  std::vector<OpId> walk(RegionId region, Scope scope) {
    if (graph[region].index) depth_of[graph[region].index.index] = scope.depth;
    std::vector<OpId> kept, leaving;
    for (const OpId id : std::vector<OpId>(graph[region].ops)) {
      const int inner_depth = scope.depth + 1;
      const Scope inner{inner_depth, graph[id].kind == OpKind::kFor ? inner_depth : scope.loop};
      for (const RegionId r : std::vector<RegionId>(graph[id].regions)) {
        // An op that left an inner region may leave this one too.
        for (const OpId out : walk(r, inner)) place(out, scope, kept, leaving);
      }
      place(id, scope, kept, leaving);
    }
    graph[region].ops = std::move(kept);
    changed = changed || !leaving.empty();
    return leaving;
  }

 private:
  // Whether an op leaves its loop, or an `if` on the way out of a loop.
  bool leaves(const Op& op, Scope scope) const {
    if (scope.loop == 0 || !is_pure_scalar(graph, op)) return false;
    if (scope.depth != scope.loop && !is_cheap(op)) return false;
    return std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId v) {
      return depth_of[v.index] < scope.loop || defects.has(Defect::kHoistedLoopIndex);
    });
  }
  bool is_cheap(const Op& op) const {
    return std::all_of(op.results.begin(), op.results.end(),
                       [&](ValueId v) { return graph[v].dtype == Dtype::kIndex || graph[v].dtype == Dtype::kBool; });
  }

  void place(OpId id, Scope scope, std::vector<OpId>& kept, std::vector<OpId>& leaving) {
    const bool out = leaves(graph[id], scope);
    (out ? leaving : kept).push_back(id);
    for (const ValueId r : graph[id].results) depth_of[r.index] = out ? scope.depth - 1 : scope.depth;
  }

 public:
  Graph& graph;
  std::vector<int> depth_of;  // of the region that defines a value; 0 for the body, constants too
  bool changed = false;
  const Defects& defects;
};

}  // namespace

bool share_common_scalars(Graph& kernel, const Defects& defects) {
  Sharing sharing{kernel, {}, {}, false, defects};
  for (size_t i = 0; i < kernel.values.size(); ++i) sharing.stands_for.push_back(ValueId(i));
  sharing.walk(Graph::body());
  if (sharing.changed) kernel = compact(kernel);
  return sharing.changed;
}

bool move_invariants_out(Graph& kernel, const Defects& defects) {
  Motion motion{kernel, std::vector<int>(kernel.values.size(), 0), false, defects};
  motion.walk(Graph::body(), {});
  if (motion.changed) kernel = compact(kernel);
  return motion.changed;
}

bool move_conditions_out(Graph& kernel) {
  bool changed = false;
  // The regions of an op follow the region that holds it, so the innermost loops come first.
  for (size_t r = kernel.regions.size(); r-- > 0;) {
    for (OpId& id : kernel.regions[r].ops) {
      if (kernel[id].kind != OpKind::kFor) continue;
      const RegionId body = kernel[id].regions.at(0);
      std::vector<OpId>& ops = kernel[body].ops;
      const auto is_scalar = [&](OpId op) { return is_pure_scalar(kernel, kernel[op]); };
      const auto at = std::ranges::find_if_not(ops, is_scalar);
      if (at == ops.end() || at + 1 != ops.end()) continue;
      const OpId inner = *at;
      if (kernel[inner].kind != OpKind::kIf || kernel[inner].regions.size() != 1) continue;
      const ValueId predicate = kernel[inner].operands.at(0);
      const auto makes_it = [&](OpId op) { return std::ranges::count(kernel[op].results, predicate) > 0; };
      if (std::any_of(ops.begin(), at, makes_it)) continue;
      const RegionId then = kernel[inner].regions[0];
      const std::vector<OpId> guarded = std::move(kernel[then].ops);
      const auto place = ops.erase(at);
      ops.insert(place, guarded.begin(), guarded.end());
      kernel[then].ops = {id};
      id = inner;
      changed = true;
    }
  }
  if (changed) kernel = compact(kernel);
  return changed;
}

bool hoist(Graph& kernel, const Defects& defects) {
  bool changed = false;
  for (bool again = true; again; changed |= again) {
    again = share_common_scalars(kernel, defects);
    again |= move_invariants_out(kernel, defects);
    again |= move_conditions_out(kernel);
  }
  return changed;
}

}  // namespace fusebox
