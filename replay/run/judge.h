// Rules that all judges of runs share: which failures belong to the launch alone, when two schedules must give the same
// bits, where these first differ, and the kind of place that a finding names.
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

// Whether only the launch can know of the failure, which is then no fault of the program.
bool is_launch_refusal(ErrorCode code);

// Whether the sizes may be at fault: once axes are resolved for them, extents may not fit, or an axis may be expanded over
// which no output lies.
bool is_size_refusal(ErrorCode code);

// Whether results have the same bits in whatever order reductions take their elements. False if sums round, or if a
// maximum keeps the sign of the zero or the bits of the NaN that comes first.
bool is_order_free(const Graph& g);

// A scalar as a tensor of rank 0.
TensorData as_tensor(const Argument& a);

// Whether shapes are equal, and strides along axes of several elements. The strides of a tensor without elements reach
// nothing.
bool has_same_layout(const TensorData& x, const TensorData& y);

// The position of the first element that differs in its bits, in row-major order, or -1 if dtypes or shapes differ. All
// NaNs are equal. Complex numbers are left to the reference.
std::optional<int64_t> first_difference(const TensorData& a, const TensorData& b);

// The op that makes the value that a place names. If the place names no value of the graph, the place without digits.
std::string place_class(const Graph& g, std::string_view place);

}  // namespace fusebox
