// Rows that are reduced, and columns that are summed over all rows: the gradients of a normalisation's input, weight and
// bias. A block keeps a row in registers, and walks several rows. Its threads keep the sums of their columns meanwhile,
// and the sums of all blocks are combined at the end.
#include "passes/schedule/reduction_choices.h"
#include "passes/schedule/reduction_loops.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> inner_outer_declines(const ScheduleView& view) {
  std::string why;
  const auto space = ReductionSpace::find_with_columns(view.fusion, why);
  if (!space || !choose_walks(view, *space, why)) return why;
  return turned_declines(view, *space);
}

Heuristics inner_outer_choose(const ScheduleView& view) {
  std::string why;
  return *choose_walks(view, *ReductionSpace::find_with_columns(view.fusion, why), why);
}

std::vector<Step> inner_outer_plan(const ScheduleView& view, const Heuristics& h) {
  std::string why;
  return plan_reduction(view, *ReductionSpace::find_with_columns(view.fusion, why), h);
}

}  // namespace fusebox
