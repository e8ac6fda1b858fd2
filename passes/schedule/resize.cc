// Fusions that slice, pad or join tensors beside what pointwise fusions do. Tensors behind such an op are computed in
// the loops of its result, so nothing crosses threads; an offset that the width divides leaves a copy vectorized.
#include <algorithm>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "passes/nest/symbols.h"
#include "passes/schedule/elementwise.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

namespace {

// Parts of a joined axis that are broadcasts, at most: each is loaded and computed for every place of the axis. Where the axis lies
// innermost, neighbouring threads find the loads in the cache, and more pay.
constexpr int64_t kBroadcastParts = 2, kBroadcastPartsInside = 4;

bool has_many_broadcast_parts(const Graph& g, OpId cat) {
  const size_t rank = logical_without_reductions(g, g.tensor_of(g[cat].results[0])).size();
  const size_t axis = named_axis(g[cat].attrs.integer(AttrKey::kAxis), rank);
  const int64_t broadcasts = std::ranges::count_if(g[cat].operands, [&](ValueId v) {
    return g[logical_without_reductions(g, g.tensor_of(v))[axis]].iter_type == IterType::kBroadcast;
  });
  return broadcasts > (axis + 1 == rank ? kBroadcastPartsInside : kBroadcastParts);
}

}  // namespace

std::optional<std::string> resize_declines(const ScheduleView& view) {
  if (!has_resizes(view.fusion)) return "no op slices, pads or joins a tensor";
  const Graph& g = view.fusion;
  for (OpId op : g[Graph::body()].ops) {
    if (g[op].kind != OpKind::kCat) continue;
    const ValueId joined = g[op].results[0];
    if (std::ranges::any_of(g.tensor_of(joined).logical, [&](DomainId d) { return hides_sum(g, g[d].extent); }))
      return "an extent of %" + g[joined].name +
             " is made of numbers beyond 32 bits, so it is not seen to be that of the joined tensors";
    if (has_many_broadcast_parts(g, op))
      return "%" + g[joined].name +
             " joins many tensors of one element, each of which would be computed for all places";
  }
  return elementwise_declines(view);
}

Heuristics resize_choose(const ScheduleView& view) { return elementwise_choose(view, "resize"); }

std::vector<Step> resize_plan(const ScheduleView& view, const Heuristics& heuristics) {
  return elementwise_plan(view, heuristics);
}

}  // namespace fusebox
