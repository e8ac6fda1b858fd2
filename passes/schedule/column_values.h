// Values of whole columns, such as the reciprocal of a deviation or a weight, that a thread should make once, and not once
// more for each of the places of the column that it keeps. Batch norm of [7007, 1584] in bf16 had 129 reciprocals and 40
// loads in each thread; with 9 and 10 it took 50.1 µs on an H200, and 52.4 before.
//
//   // r = rsqrt(variance + ε), y = (x - mean) * r * cast(weight)   →   r, and the copy of the weight
#pragma once

#include <vector>

#include "ir/module/module.h"
#include "passes/schedule/reduction_space.h"

namespace fusebox {

// The results of ops, in order. Each lies between something that costs more than arithmetic and the ops of all places. What has
// an element for some of the kept axes alone is none of them: loops over the others would make it once more for each.
std::vector<ValueId> made_once_for_columns(const Graph& g, const ReductionSpace& space);
// Whether the tensor has no element for each place of a column, and one for each of all kept axes.
bool is_of_whole_columns(const Graph& g, const ReductionSpace& space, ValueId v);
// The bytes that a thread keeps of them for an element of a column, with the inputs of whole columns.
int64_t once_bytes(const Graph& g, const ReductionSpace& space);

}  // namespace fusebox
