#include "passes/schedule/schedule_memo.h"

#include <utility>

namespace fusebox {

std::shared_ptr<const FusionAxes> fusion_axes(const ScheduleView& view) {
  if (!view.memo) return std::make_shared<const FusionAxes>(view.fusion);
  if (!view.memo->axes) view.memo->axes = std::make_shared<const FusionAxes>(view.fusion);
  return view.memo->axes;
}

std::shared_ptr<const Prepared> prepared_of(const ScheduleView& view) {
  if (!view.memo) return std::make_shared<const Prepared>(view);
  if (!view.memo->prepared) view.memo->prepared = std::make_shared<Prepared>(view);
  return view.memo->prepared;
}

std::shared_ptr<Prepared> take_prepared(const ScheduleView& view) {
  // A caller that looks at it keeps what it sees.
  const bool is_free = view.memo && view.memo->prepared && view.memo->prepared.use_count() == 1;
  return is_free ? std::exchange(view.memo->prepared, nullptr) : std::make_shared<Prepared>(view);
}

}  // namespace fusebox
