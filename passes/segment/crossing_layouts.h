// The layouts of tensors that cross segments: the steps of a segment may choose the order in which its outputs lie in
// memory, and the segments that read them are made for that order.
//
//   CrossingLayouts layouts(fusion, segmentation);
//   for each segment i, in order: schedule extract(fusion, segmentation.segments[i]), then
//   layouts.take(segmentation, i, scheduled);
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph/name_index.h"
#include "ir/module/module.h"
#include "ir/table/defect.h"

namespace fusebox {

class CrossingLayouts {
 public:
  // The fusion must outlive this. The segmentation is complete; its crossings change by `take` alone.
  CrossingLayouts(const Graph& fusion, const Segmentation& segmentation, const Defects& defects = {});

  // Passes on the layout that a segment's steps gave its outputs: to the allocation, and to the segments that read
  // them. Throws kIllegalAllocation for a layout that is no order of the logical axes.
  void take(Segmentation& segmentation, size_t segment, const Graph& scheduled);

 private:
  struct Place {
    size_t segment, input;
  };

  const Graph& fusion_;
  const Defects& defects_;
  NameIndex names_;
  std::unordered_map<std::string, std::vector<Place>> places_;  // where segments read a value
};

}  // namespace fusebox
