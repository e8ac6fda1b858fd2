// Checks that any code may walk a graph: ids in range, back references that agree, no cycle, bounded depth.
// ir/verify/verify.h then checks what the program means (ranks, dtypes, names, order).
//
// In a graph that passes:
// - Every id is in range, or none where graph.h allows it. A value has kind kTensor exactly where it has a tensor, and
//   that tensor names the value.
// - All domains of a tensor's lists, and of one transform, belong to one tensor. A transform's outputs name it as
//   their `def`.
// - Extents and factors are scalars. A region belongs to at most one op, and an op to at most one region.
// - Regions nest, domains derive and values depend without cycles, the first two within limits.h.
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
// The extents are not negative and their product fits 63 bits; there are as many strides, or none.
void check_layout(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, const Place& place);

// Checks the invariants of bundle.h. Does not look into the modules.
void check_structure(const Bundle& b, const Place& place);
// Checks the invariants of cache_record.h, as far as they do not depend on a program's meaning.
void check_structure(const CacheRecord& r, const Place& place);

}  // namespace fusebox
