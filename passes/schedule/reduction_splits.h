// The loops of a schedule of reductions: splits and merges of the reference's axes, by the heuristics. They are listed
// in reduction_loops.h.
//
//   // %y.i0, %y.i1 (reduced), inner registers, vector 8, lanes 32, chunks 2
//   //   split %y.i1 by 8 -> c, v; split %y.c by 32 -> k, l; split %y.k by 2 outer -> r, w
//   // loops i0 grid.x, r, w block.y, l block.x, v
#pragma once

#include <string>
#include <vector>

#include "passes/schedule/fresh_names.h"
#include "passes/schedule/heuristics.h"
#include "passes/schedule/reduction_access.h"
#include "passes/schedule/step_draft.h"

namespace fusebox {

// A loop of the reference, with the mark that all tensors get.
struct ScheduledLoop {
  std::string name;
  ParallelType type = ParallelType::kSerial;
};

struct SplitLoops {
  std::vector<ScheduledLoop> loops;  // outermost first
  std::string vector, unrolled;      // loops that copies mark; empty: none
  std::string walked;                // the loop over rows that a thread takes one after another; empty: none
  std::string last_shared;           // the innermost loop at which the loads of a strip come together
};

// The steps go to `steps`, and the loops' names come from `names`.
SplitLoops split_reference(const Graph& g, const ReductionAccess& access, const std::string& reference,
                           const Heuristics& h, FreshNames& names, StepDraft& steps);

}  // namespace fusebox
