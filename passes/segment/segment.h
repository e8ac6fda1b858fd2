// Segmentation decides which ops of a fusion run together, and how. A segmentation is data (ir/module/module.h). These
// functions make and complete segmentations, and extract segments from the fusion. Each segment becomes a fusion of its
// own. Its inputs and outputs are the values that cross its border.
//
// Invariants of a completed segmentation: every tensor op is in a segment, and a segment runs after the segments that
// it needs.
//
//   Segmentation s = plan_unfused(fusion);            // a kernel for each op
//   Graph k = extract(fusion, s.segments[0]);         // names are those of the fusion, so its steps apply
#pragma once

#include <memory>
#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"

namespace fusebox {

// A segment for each op. Its kernel gives every element a thread of its own, and reductions are serial. An op that has no
// kernel goes to ATen. Always correct, slow.
Segmentation plan_unfused(const Graph& fusion, const Defects& defects = {});
// The whole fusion as one kernel, scheduled by these steps.
Segmentation plan_single(const Graph& fusion, std::vector<Step> steps, const Defects& defects = {});
// The segmentation that the `assign` steps of a list describe. Any other step goes to the segment that its attribute
// names, or else to the first segment that has all tensors that it names. A segment has the tensors that it makes and the
// inputs that it reads. A step that names no tensor goes to every kernel. A fact about sizes goes to every kernel that has
// all of them. Every tensor op must be assigned; an op in several segments is computed in each. A kernel of one op that no
// step names runs as in the unfused plan. Throws kStepReferent (also for a fact about sizes that no kernel has together),
// kStepNotApplicable, and what
// `complete` throws.
Segmentation plan_assigned(const Graph& fusion, std::span<const Step> steps, const Defects& defects = {});
// The segmentation of a schedule: several segments if it assigns ops, otherwise one. Throws what `plan_assigned` throws.
Segmentation plan_steps(const Graph& fusion, std::span<const Step> steps, const Defects& defects = {});

// Fills in the crossing values of segments whose ops are set. Orders the segments so that each runs after the segments
// that it needs. Throws kInvalidGraph if there is no such order or if an op is in no segment, and kUnknownName if a
// segment names a tensor that no op makes.
Segmentation complete(const Graph& fusion, Segmentation segmentation, const Defects& defects = {});

// The segment as a fusion, before its steps are applied. The fusion must not hold a symbolic domain.
Graph extract(const Graph& fusion, const Segment& segment, const Defects& defects = {});

struct ExtractionSource;

// Extracts any number of segments of one fusion. The cost of each grows with the segment, not with the fusion.
class SegmentExtractor {
 public:
  // The fusion must outlive the extractor and must not change.
  explicit SegmentExtractor(const Graph& fusion, const Defects& defects = {});
  ~SegmentExtractor();
  SegmentExtractor(const SegmentExtractor&) = delete;

  // The same as extract(fusion, segment, defects).
  Graph extract(const Segment& segment);

 private:
  std::unique_ptr<ExtractionSource> source_;
};

// The steps that give each element of a tensor op's result a thread.
std::vector<Step> unfused_steps(const Graph& fusion, OpId op);

}  // namespace fusebox
