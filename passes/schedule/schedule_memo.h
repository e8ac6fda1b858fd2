// What schedulers have worked out of one view, so that the next call with the same view finds it: a fusion is made ready
// for one nest once, and its loops are written once, although `declines`, `choose` and `plan` all need them.
//
// Invariants: everything here is the result of a pure function of the view, and of the heuristics that stand beside it.
// So a call gives the same with a memo, with another one, and without any. A memo belongs to one view.
//
//   ScheduleMemo memo;
//   const ScheduleView view{.fusion = fusion, …, .memo = &memo};
//   const auto steps = scheduler.plan(view, scheduler.choose(view));
//   memo.schedule.prepared->w.graph()   // the fusion with these steps, if the scheduler has applied all of them
#pragma once

#include <memory>

#include "passes/plan/kernel_plan.h"
#include "passes/schedule/heuristics.h"
#include "passes/schedule/planning_work.h"
#include "passes/schedule/prepared.h"

namespace fusebox {

// A fusion with steps that heuristics gave.
struct Written {
  Heuristics heuristics;
  std::shared_ptr<Prepared> prepared;                  // null: nothing is written yet
  bool is_refused = false;                             // the last step is
  std::shared_ptr<KernelPlan::Views> views = nullptr;  // of the kernel plan of these steps, as far as they are known
};

struct ScheduleMemo {
  PlanningWork* work = nullptr;  // counted there, if given
  std::shared_ptr<const FusionAxes> axes;
  std::shared_ptr<Prepared> prepared;
  Written
      loops;  // of all tensors, without vectors and inlining, and without the widths of single copies in `heuristics`
  Written schedule;  // a whole schedule, no step of which is refused
};

std::shared_ptr<const FusionAxes> fusion_axes(const ScheduleView& view);
// The fusion made ready for one nest.
std::shared_ptr<const Prepared> prepared_of(const ScheduleView& view);
// The same, for a caller that writes steps behind. The memo does not keep it.
std::shared_ptr<Prepared> take_prepared(const ScheduleView& view);

}  // namespace fusebox
