#include "passes/segment/crossing_layouts.h"

#include "ir/domain/domain.h"
#include "ir/table/error.h"

namespace fusebox {

CrossingLayouts::CrossingLayouts(const Graph& fusion, const Segmentation& segmentation, const Defects& defects)
    : fusion_(fusion), defects_(defects), names_(fusion) {
  for (size_t i = 0; i < segmentation.segments.size(); ++i)
    for (size_t k = 0; k < segmentation.segments[i].inputs.size(); ++k)
      places_[segmentation.segments[i].inputs[k].value].push_back({i, k});
}

void CrossingLayouts::take(Segmentation& s, size_t segment, const Graph& scheduled) {
  // By position, because a step may have put another tensor in an output's place.
  const auto made = outputs(scheduled);
  for (size_t k = 0; k < made.size(); ++k) {
    Crossing& out = s.segments[segment].outputs[k];
    const ValueId v = made[k].value;
    if (!scheduled.is_tensor(v)) continue;
    // An output that is in order here and in the fusion needs no allocation order.
    const auto in_fusion = names_.find(out.value);
    const bool was_in_order =
        in_fusion && fusion_.tensor_of(*in_fusion).allocation.empty() && out.allocation_order.empty();
    if (scheduled.tensor_of(v).allocation.empty() && was_in_order) continue;
    const auto logical = logical_without_reductions(scheduled, scheduled.tensor_of(v));
    std::vector<int64_t> order;
    for (DomainId d : allocation_of(scheduled, scheduled.tensor_of(v)))
      if (const size_t axis = position_in(logical, d); axis < logical.size())
        order.push_back(static_cast<int64_t>(axis));
    if (order.size() != logical.size())
      throw Error(
          ErrorCode::kIllegalAllocation,
          "what crosses a kernel's border is laid out by its logical axes; set the allocation to an order of them",
          "%" + out.value);
    out.allocation_order = order;
    if (defects_.has(Defect::kCrossingOrderDropped)) continue;
    if (const auto it = places_.find(out.value); it != places_.end())
      for (const Place& place : it->second)
        if (place.segment > segment) s.segments[place.segment].inputs[place.input].allocation_order = order;
  }
}

}  // namespace fusebox
