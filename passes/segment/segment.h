// Segmentation: which ops of a fusion run together, and as what. A segmentation is data (ir/module/module.h); these
// functions make, check and take it apart. Each segment becomes a fusion of its own, whose inputs and outputs are what
// crosses its border.
//
//   Segmentation s = plan_unfused(fusion);            // a kernel for each op
//   Graph k = extract(fusion, s.segments[0]);         // names are those of the fusion, so the steps apply
#pragma once

#include <memory>
#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"

namespace fusebox {

// One kernel for each op: every element on a thread of its own, reductions serial. Always correct, slow.
Segmentation plan_unfused(const Graph& fusion, const Defects& defects = {});
// The whole fusion as one kernel, scheduled by these steps.
Segmentation plan_single(const Graph& fusion, std::vector<Step> steps, const Defects& defects = {});
// From the `assign` steps of a list; another step goes to the first segment that has all tensors that it names: makes
// them, or reads them where they are inputs; one that names none goes to every kernel. Every tensor op must be
// assigned; one that is in several segments is computed in each, and a kernel of one op that no step names runs as in
// the unfused plan. Throws kStepReferent, kStepNotApplicable, and what `complete` throws.
Segmentation plan_assigned(const Graph& fusion, std::span<const Step> steps, const Defects& defects = {});
// What a schedule says: several segments where it assigns ops, else one.
Segmentation plan_steps(const Graph& fusion, std::span<const Step> steps, const Defects& defects = {});

// Fills in what crosses the borders of segments whose ops are set, and orders them so that each runs after what it
// needs. Throws kInvalidGraph, naming a value, where there is no such order or an op is in no segment.
Segmentation complete(const Graph& fusion, Segmentation segmentation, const Defects& defects = {});

// The segment as a fusion, before its steps are applied. The fusion must hold no symbolic domain.
Graph extract(const Graph& fusion, const Segment& segment);

struct ExtractionSource;

// Extracts any number of segments of one fusion. Each costs as much as the segment is large, not as the fusion is.
class SegmentExtractor {
 public:
  // The fusion outlives this and stays as it is.
  explicit SegmentExtractor(const Graph& fusion);
  ~SegmentExtractor();
  SegmentExtractor(const SegmentExtractor&) = delete;

  // The same as extract(fusion, segment).
  Graph extract(const Segment& segment);

 private:
  std::unique_ptr<ExtractionSource> source_;
};

// Steps that give each element of a tensor op's result a thread.
std::vector<Step> unfused_steps(const Graph& fusion, OpId op);

}  // namespace fusebox
