// Pointwise fusions: every element of the result is computed on its own, by one thread.
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> pointwise_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  for (OpId op : g[Graph::body()].ops) {
    if (demands(g[op].kind, kSignature) || !g.is_tensor(g[op].results[0])) continue;
    if (!demands(g[op].kind, kPointwise)) return "%" + g[g[op].results[0]].name + " is not made element by element";
  }
  return "it is not built yet";
}

Heuristics pointwise_choose(const ScheduleView&) { return {.scheduler = "pointwise", .choices = {}}; }

std::vector<Step> pointwise_plan(const ScheduleView&, const Heuristics&) { return {}; }

}  // namespace fusebox
