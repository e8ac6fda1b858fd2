// Pointwise fusions: every element of the result is computed on its own, by one thread.
#include "passes/schedule/elementwise.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> pointwise_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  if (has_resizes(g)) return "an op slices, pads or joins tensors, which the scheduler resize is for";
  return elementwise_declines(view);
}

Heuristics pointwise_choose(const ScheduleView& view) { return elementwise_choose(view, "pointwise"); }

std::vector<Step> pointwise_plan(const ScheduleView& view, const Heuristics& heuristics) {
  return elementwise_plan(view, heuristics);
}

}  // namespace fusebox
