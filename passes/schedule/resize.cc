// Fusions that slice, pad or join tensors beside what pointwise fusions do. Tensors behind such an op are computed in
// the loops of its result, so nothing crosses threads; an offset that the width divides leaves a copy vectorized.
#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/nest/symbols.h"
#include "passes/schedule/elementwise.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> resize_declines(const ScheduleView& view) {
  if (!has_resizes(view.fusion)) return "no op slices, pads or joins a tensor";
  const Graph& g = view.fusion;
  for (OpId op : g[Graph::body()].ops) {
    if (g[op].kind != OpKind::kCat) continue;
    const ValueId joined = g[op].results[0];
    if (std::ranges::any_of(g.tensor_of(joined).logical, [&](DomainId d) { return hides_sum(g, g[d].extent); }))
      return "an extent of %" + g[joined].name +
             " is made of numbers beyond 32 bits, so it is not seen to be that of the joined tensors";
  }
  return elementwise_declines(view);
}

Heuristics resize_choose(const ScheduleView& view) { return elementwise_choose(view, "resize"); }

std::vector<Step> resize_plan(const ScheduleView& view, const Heuristics& heuristics) {
  return elementwise_plan(view, heuristics);
}

}  // namespace fusebox
