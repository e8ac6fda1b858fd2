// Slices of one place, such as `x[:, 0:1]`. Their axis has one element, or none if the tensor ends before the place.
//
//   // %s = slice %x from [0, 0] to [%m, 1] by [1, 1] : f32[%m, ?], of %x : f32[%m, %n]
//   is_one_place(g, second axis of %s)  ==  true: its extent is min(1, %n)
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// Whether the axis has at most one element for all sizes, because it is an iteration over the difference of two bounds of a
// slice that lie one apart: min(k + 1, n) − min(k, n), or the same from the end.
bool is_one_place(const Graph& g, DomainId axis);

}  // namespace fusebox
