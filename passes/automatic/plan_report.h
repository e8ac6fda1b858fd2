// The costs of an automatic plan: the bytes that each segment reads and writes, and for each pair of segments that hand a
// tensor from one to the other, why they are not one kernel.
//
//   PlanReport r = report_plan(concretized, segmentation, decisions, options);
//   r.parts[0].writes[0].bytes
#pragma once

#include <string>
#include <vector>

#include "ir/module/module.h"
#include "passes/automatic/plan_automatic.h"

namespace fusebox {

struct PlanTensor {
  std::string name;
  int64_t bytes = 0;  // 0 if a size is not known
};

struct PlanPart {
  std::string segment;
  SegmentExecutor executor = SegmentExecutor::kKernel;
  std::string heuristics;          // as text
  std::vector<Declined> declined;  // by the schedulers that come before
  std::vector<std::string> ops;
  std::vector<PlanTensor> reads, writes;
};

struct PlanMerge {
  size_t from = 0, to = 0;  // parts: `to` reads what `from` makes
  std::vector<PlanTensor> crossing;
  // Why they are not merged: each scheduler's reason. Empty if one takes the merged ops, as `heuristics` says, and the
  // plan moves fewer bytes or launches fewer kernels than with this merge.
  std::vector<Declined> declined;
  std::string heuristics;
  // The outputs that this kernel could not store over the inputs that they overwrite.
  std::vector<std::string> own_memory;
};

// An output that does not lie over the input that it overwrites. It is copied there at the end of the run.
struct PlanCopy {
  PlanTensor from;
  std::string to;
};

struct PlanReport {
  std::vector<PlanPart> parts;    // in the order in which they run
  std::vector<PlanMerge> merges;  // not taken
  std::vector<PlanCopy> copies;
};

// `fusion` is concretized and `segmentation` complete; `options.sizes` give the bytes.
PlanReport report_plan(const Graph& fusion, const Segmentation& segmentation, const std::vector<Decision>& decisions,
                       const AutomaticOptions& options);

}  // namespace fusebox
