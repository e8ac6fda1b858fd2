// Rows that are read again after they have been reduced: softmax, normalisations. A row that fits stays in the registers
// of a block, which reads it once. A longer one, and one whose kept axes lie innermost, is read again in each pass.
#include "passes/schedule/reduction_choices.h"
#include "passes/schedule/reduction_loops.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> persistent_declines(const ScheduleView& view) {
  std::string why;
  const auto space = ReductionSpace::find(view.fusion, why);
  if (!space) return why;
  if (space->passes == 1) return "nothing with the axes that are reduced depends on a reduction";
  if (!choose_passes(view, *space, why)) return why;
  return std::nullopt;
}

Heuristics persistent_choose(const ScheduleView& view) {
  std::string why;
  return *choose_passes(view, *ReductionSpace::find(view.fusion, why), why);
}

std::vector<Heuristics> persistent_others(const ScheduleView& view) {
  std::string why;
  return other_passes(view, *ReductionSpace::find(view.fusion, why));
}

std::vector<Step> persistent_plan(const ScheduleView& view, const Heuristics& h) {
  std::string why;
  return plan_reduction(view, *ReductionSpace::find(view.fusion, why), h);
}

}  // namespace fusebox
