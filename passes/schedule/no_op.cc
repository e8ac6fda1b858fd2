// Fusions without an element to compute, as the classes of sizes show. Their kernel has a grid of no block, and is not
// launched. An output that is an input is in no kernel at all: the segmentation leaves it to the host program.
#include <algorithm>

#include "passes/schedule/elementwise.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> no_op_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (!has_no_elements(view, out.value)) return "the output %" + g[out.value].name + " has elements";
  }
  return elementwise_declines(view);
}

Heuristics no_op_choose(const ScheduleView& view) {
  Heuristics h{.scheduler = "no_op", .choices = {}};
  h.set("reference", "%" + view.fusion[reference_of(view)].name);
  h.set("axes", 1);
  h.set("vector", 1);
  h.set("threads", view.device.warp);
  h.set("unroll", 1);
  h.set("outer", 0);
  h.set("reuse", 1);
  return h;
}

std::vector<Step> no_op_plan(const ScheduleView& view, const Heuristics& heuristics) {
  return elementwise_plan(view, heuristics);
}

}  // namespace fusebox
