// Rows that are read again after they have been reduced: softmax, normalisations. A row that fits stays in the registers
// of a block or of a cluster, which reads it once; so does a column whose kept axes lie innermost. A longer one is read again
// in each pass.
#include "passes/schedule/reduction_choices.h"
#include "passes/schedule/reduction_loops.h"
#include "passes/schedule/reduction_passes.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {
namespace {

// Whether each pass makes again what an earlier one has made (PassSplitter), in the registers or not.
bool splits_passes(const Heuristics& h) { return h.word("form") != "registers" || h.has("keep"); }

}  // namespace

std::optional<std::string> persistent_declines(const ScheduleView& view) {
  std::string why;
  const auto space = ReductionSpace::find(view.fusion, why);
  if (!space) return why;
  if (space->passes == 1) return "nothing with the axes that are reduced depends on a reduction";
  if (auto turned = turned_declines(view, *space)) return turned;
  const auto chosen = choose_passes(view, *space, why);
  if (!chosen) return why;
  if (splits_passes(*chosen) && !are_passes_connected(view.fusion, *space))
    return "a pass over the rows reads no tensor with all of their axes, so that it gets no loops";
  return std::nullopt;
}

Heuristics persistent_choose(const ScheduleView& view) {
  std::string why;
  return *choose_passes(view, *ReductionSpace::find(view.fusion, why), why);
}

std::vector<Heuristics> persistent_others(const ScheduleView& view) {
  std::string why;
  const auto space = ReductionSpace::find(view.fusion, why);
  auto others = other_passes(view, *space);
  if (!are_passes_connected(view.fusion, *space)) std::erase_if(others, splits_passes);
  return others;
}

std::vector<Step> persistent_plan(const ScheduleView& view, const Heuristics& h) {
  std::string why;
  return plan_reduction(view, *ReductionSpace::find(view.fusion, why), h);
}

}  // namespace fusebox
