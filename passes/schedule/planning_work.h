// Counts of what planning has cost. They follow from the program alone, so tests bound them.
//
//   plan_automatic(fusion, options).work.steps
#pragma once

#include <cstdint>

namespace fusebox {

struct PlanningWork {
  int64_t stretches = 0;     // runs of ops of which the cutting has asked whether one kernel can have them
  int64_t tried_cuts = 0;    // cuts of the whole fusion whose parts were scheduled, the last one too
  int64_t extractions = 0;   // segments that were made fusions of their own
  int64_t steps = 0;         // steps that were applied to graphs, those of schedules that were only tried too
  int64_t kernel_plans = 0;  // made to ask for vector widths, or whether a schedule is legal
  bool operator==(const PlanningWork&) const = default;
};

}  // namespace fusebox
