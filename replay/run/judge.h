// What those who judge runs agree on: which failures are the launch's alone, when two schedules must give the same
// bits, where they do not, and what kind of place a finding is at.
//
//   if (is_order_free(fusion))
//     if (const auto at = first_difference(as_tensor(scheduled), as_tensor(unfused))) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "ir/table/error.h"
#include "replay/data/tensor_data.h"

namespace fusebox {

// Failures that only the launch can know of, and no fault of the program's.
bool is_launch_refusal(ErrorCode code);

// Whether the bits of the results are the same in whatever order reductions take their elements: not where sums round,
// nor for the sign of a zero and the bits of a NaN that come first in a maximum.
bool is_order_free(const Graph& g);

// A scalar as a tensor of rank 0.
TensorData as_tensor(const Argument& a);

// The position of the first element that differs in its bits, in row-major order, -1 where dtypes or shapes do. A NaN
// is a NaN; complex numbers are for the reference to judge.
std::optional<int64_t> first_difference(const TensorData& a, const TensorData& b);

// The op that makes the value that a place names; of what is no value of the graph, the place without its digits.
std::string place_class(const Graph& g, std::string_view place);

}  // namespace fusebox
