#include "passes/schedule/scheduler.h"

#include <algorithm>

namespace fusebox {

std::vector<Heuristics> no_others(const ScheduleView&) { return {}; }
std::vector<Heuristics> persistent_others(const ScheduleView&);

#define FUSEBOX_SCHEDULER(prefix, name, executor, others, summary)   \
  std::optional<std::string> prefix##_declines(const ScheduleView&); \
  Heuristics prefix##_choose(const ScheduleView&);                   \
  std::vector<Step> prefix##_plan(const ScheduleView&, const Heuristics&);
#include "passes/schedule/scheduler_table.inc"
#undef FUSEBOX_SCHEDULER

std::span<const Scheduler> schedulers() {
  static constexpr Scheduler kRows[] = {
#define FUSEBOX_SCHEDULER(prefix, name, executor, others, summary) \
  {name, summary, SegmentExecutor::executor, prefix##_declines, prefix##_choose, others, prefix##_plan},
#include "passes/schedule/scheduler_table.inc"
#undef FUSEBOX_SCHEDULER
  };
  return kRows;
}

const Scheduler* find_scheduler(std::string_view name) {
  const auto rows = schedulers();
  const auto it = std::ranges::find(rows, name, &Scheduler::name);
  return it == rows.end() ? nullptr : &*it;
}

}  // namespace fusebox
