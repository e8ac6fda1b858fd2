// A scheduler sees a fusion that is to become one kernel, classes of its sizes and of its inputs' memory, and a
// GPU's properties. It sees no size and no device, so its decision holds for every run of the same classes.
#pragma once

#include "ir/module/device_properties.h"
#include "ir/table/defect.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {

struct ScheduleMemo;

struct ScheduleView {
  const Graph& fusion;  // concretized, at level math
  const SizeClasses& sizes;
  const MemoryClasses& memory;
  const DeviceProperties& device;
  Defects defects = {};          // seeded
  ScheduleMemo* memo = nullptr;  // of this view (schedule_memo.h); null: every call works out everything anew
};

}  // namespace fusebox
