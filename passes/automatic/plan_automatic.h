// The automatic plan decides how a fusion is cut into segments and how each of them is scheduled. Its decision is a list
// of steps, so a run with these steps repeats it without any scheduler.
//
// Invariants: the plan depends on nothing but its arguments. A schedule in it is legal: the kernel plan was made. An op
// that no scheduler takes runs as in the unfused plan.
//
//   AutomaticPlan p = plan_automatic(concretized, {.sizes = sizes, .memory = {}, .device = default_device()});
//   Segmentation s = plan_steps(concretized, p.steps);
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "passes/schedule/planning_work.h"
#include "passes/schedule/scheduler.h"
#include "passes/segment/crossing_layouts.h"

namespace fusebox {

struct Declined {
  std::string scheduler;
  std::string why;
  bool operator==(const Declined&) const = default;
};

// How one segment is scheduled.
struct Decision {
  std::string segment;
  Heuristics heuristics;                // its scheduler is "unfused" if none takes the segment
  std::vector<Declined> declined;       // the schedulers before it in the table
  std::vector<Heuristics> others = {};  // that its scheduler would have a search measure, if they were asked for
  bool operator==(const Decision&) const = default;
};

// A segment with the steps of its schedule, and the fusion that it is with these steps. So nobody has to extract it again
// and apply them.
struct PlannedSegment {
  Segment segment;
  Graph scheduled;
};

struct AutomaticPlan {
  std::vector<Step> steps;
  std::vector<Decision> decisions;      // by segment, in the order in which they were made
  std::vector<PlannedSegment> planned;  // of the same segments
  PlanningWork work;                    // that finding them took
};

// Heuristics that are taken in place of others. Nothing happens where a scheduler does not choose these others, or where
// no legal schedule follows.
struct Replacement {
  Heuristics chosen, taken;
  bool operator==(const Replacement&) const = default;
};

struct AutomaticOptions {
  Bindings sizes = {};        // of the fusion; only their classes are used
  MemoryClasses memory = {};  // of its inputs
  DeviceProperties device = default_device();
  // By segment: heuristics in place of those that its scheduler chooses.
  std::map<std::string, Replacement> heuristics = {};
  bool others = false;   // fill in Decision::others
  Defects defects = {};  // seeded
  // How ATen lays out what its segments make for these sizes and inputs (segment/crossing_layouts.h).
  InferLayouts infer = nullptr;
  std::span<const BoundInput> inputs = {};
};

// The rewrites that change the fusion once these steps are applied: `precision` steps or none.
std::vector<Step> automatic_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects = {});

// The fusion is concretized. Throws what `complete` throws.
AutomaticPlan plan_automatic(const Graph& fusion, const AutomaticOptions& options);

}  // namespace fusebox
