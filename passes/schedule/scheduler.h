// Schedulers: a row each in scheduler_table.inc, tried in this order. A scheduler takes a fusion that is to become one
// segment, a kernel or a call of ATen, or declines it with a reason. It chooses heuristics, and makes steps from them.
//
// Invariants: a scheduler is a pure function of the view. `plan` reads the view's fusion and the heuristics alone.
//
//   for (const Scheduler& s : schedulers())
//     if (!s.declines(view)) return s.plan(view, s.choose(view));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module/step.h"
#include "ir/table/enums.h"
#include "passes/schedule/heuristics.h"
#include "passes/schedule/schedule_view.h"

namespace fusebox {

struct Scheduler {
  std::string_view name;
  std::string_view summary;
  SegmentExecutor executor;  // of the segment that it makes
  // Why it cannot make one kernel of this fusion: a lower-case clause; nothing if it can.
  std::optional<std::string> (*declines)(const ScheduleView& view);
  Heuristics (*choose)(const ScheduleView& view);
  // Choices of another kind that may be as fast, for a search that measures. Their schedules may be refused.
  std::vector<Heuristics> (*others)(const ScheduleView& view);
  std::vector<Step> (*plan)(const ScheduleView& view, const Heuristics& heuristics);
};

std::span<const Scheduler> schedulers();
const Scheduler* find_scheduler(std::string_view name);

}  // namespace fusebox
