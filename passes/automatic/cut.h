// Cuts a fusion into parts that schedulers take, so that few kernels run and few bytes cross memory. A part is a stretch
// of the fusion's ops in canonical order, without the ops that only other parts need, and with copies of cheap ops that
// it needs: an up-cast, a broadcast or a constant tensor is computed again where it is read, and never stored.
//
// Invariants: every op that an output needs is in a part, and parts stand in an order in which they can run. A part of
// one op may be one that no scheduler takes. An op that ATen alone computes is a part of its own, without copies of others.
//
// An output that overwrites an input lies in the input's memory if a schedule allows it. Where none does, the part is tried
// with memory of its own for the output. The price of the copy that this needs is weighed against that of other cuts.
//
//   for (const CutPart& p : cut(fusion, options, work)) …
#pragma once

#include <optional>
#include <vector>

#include "passes/automatic/plan_automatic.h"

namespace fusebox {

// The plan of a part was refused only because an output lies over an input, so that a thread may read what another one
// has overwritten.
struct InPlaceRefusal {
  std::string output;
  std::string why;
};

struct CutPart {
  std::vector<OpId> ops;    // in the order of the body
  std::vector<Step> steps;  // none if no scheduler takes the part, or if it is no kernel
  SegmentExecutor executor = SegmentExecutor::kKernel;
  Heuristics heuristics;
  std::vector<Declined> declined;
  std::vector<Heuristics> others = {};  // if they are asked for
  PlannedSegment planned = {};          // as a part of the whole cut
  // Outputs that do not lie over their inputs, because no schedule is legal then, in the order in which that was found.
  std::vector<InPlaceRefusal> own_memory = {};
  std::optional<InPlaceRefusal> in_place = {};  // why no schedule was found, if the first that was refused says so
};

// The segment's name of a part, by its position and the number of parts.
std::string part_name(const Graph& fusion, size_t index, size_t count);
// `work` grows by what it took.
std::vector<CutPart> cut(const Graph& fusion, const AutomaticOptions& options, PlanningWork& work);
// The choice of the first scheduler that takes the whole fusion, as far as it can tell without making a schedule. Nothing
// if none takes it, so that it is cut; without a scheduler's name if that one cannot choose.
std::optional<Heuristics> choice_for_all(const Graph& fusion, const AutomaticOptions& options);
// How a scheduler would make one kernel of a segment of this completed segmentation; without heuristics if none does.
CutPart try_part(const Graph& fusion, const Segmentation& segmentation, size_t segment,
                 const AutomaticOptions& options);

}  // namespace fusebox
