// Fusions without an element to compute, as the classes of sizes show. Their kernel has a grid of no block, and is not
// launched. An output that is an input is in no kernel at all: the segmentation leaves it to the host program.
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/schedule/elementwise.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

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

namespace {

// Why the schedule is refused, as the kernel plan says; nothing if it is not. Without elements, extents may be equal that
// no form of theirs shows to be, and an axis may be stretched for one reader alone. Nothing less than the plan knows all of
// it, and the plan of a kernel that never runs is small. A place in memory that is refused is mended by the caller.
std::optional<std::string> refusal_of_plan(const ScheduleView& view) {
  Graph g = view.fusion;
  try {
    StepApplier applier(g, view.defects);
    for (const Step& step : no_op_plan(view, no_op_choose(view))) applier.apply(step);
    plan_refusable(g, {.defects = view.defects, .sizes = {}});
  } catch (const Error& e) {
    if (e.code == ErrorCode::kIllegalAliasOrder) return std::nullopt;
    if (e.code < ErrorCode::kIllegalInline || e.code > ErrorCode::kIllegalCluster) throw;
    return "its loops would be refused: " + std::string(e.what()) + (e.place.empty() ? "" : " (" + e.place + ")");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> no_op_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (!has_no_elements(view, out.value)) return "the output %" + g[out.value].name + " has elements";
  }
  if (auto why = elementwise_declines(view)) return why;
  return refusal_of_plan(view);
}

}  // namespace fusebox
