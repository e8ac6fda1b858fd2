// Reductions: every reduction reads its operand once, with pointwise ops before and after it. No element of a row waits
// for the result of the whole row.
#include "passes/schedule/reduction_choices.h"
#include "passes/schedule/reduction_loops.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> reduction_declines(const ScheduleView& view) {
  std::string why;
  const auto space = ReductionSpace::find(view.fusion, why);
  if (!space) return why;
  if (space->passes > 1)
    return "a tensor with the axes that %" + view.fusion[space->reference].name + " reduces depends on a reduction";
  return turned_declines(view, *space);
}

Heuristics reduction_choose(const ScheduleView& view) {
  std::string why;
  return choose_one_pass(view, *ReductionSpace::find(view.fusion, why));
}

std::vector<Step> reduction_plan(const ScheduleView& view, const Heuristics& h) {
  std::string why;
  return plan_reduction(view, *ReductionSpace::find(view.fusion, why), h);
}

}  // namespace fusebox
