// What every graph has to hold so that any code may walk it: ids in range, back references that agree, no cycle,
// bounded depth. What a program means (ranks, dtypes, names, order) is checked after this, by ir/verify/verify.h.
//
// Of a graph that passes:
// - every id is in range, or none where graph.h allows it; kind kTensor is exactly where a tensor is, and that names
// its value;
// - all domains of a tensor's lists, and of one transform, are of one tensor; a transform's outputs name it as their
// `def`;
// - extents and factors are scalars; a region belongs to one op, an op to one region, both at most;
// - regions nest, domains derive and values depend without cycles, the first two within limits.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"
#include "serde/bundle.h"
#include "serde/place.h"

namespace fusebox {

// Throws kInvalidField or kTooLarge, with the field as place.
void check_structure(const Graph& g, const Place& place, const Defects& defects = {});
// Extents that are not negative and whose product counts elements in 63 bits; as many strides, or none.
void check_layout(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, const Place& place);

// The invariants of bundle.h. Does not look into the modules.
void check_structure(const Bundle& b, const Place& place);

}  // namespace fusebox
