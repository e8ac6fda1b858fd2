// The end of the numbers of a floating dtype.
//
//   overflow_of(Dtype::kFloat) == 0x1p128;  overflow_of(Dtype::kFloat8E4m3) == 512
#pragma once

#include <cfloat>

#include "ir/table/dtype.h"
#include "ir/table/families.h"

namespace fusebox {

// The power of two above the largest number of the dtype; for double, and for dtypes that compute nothing, the largest
// double. It stands for an infinity in comparisons.
inline double overflow_of(Dtype dtype) {
  const FloatFormat& format = format_of(dtype);
  return format.is_none() || is_storage_only(dtype) ? DBL_MAX : format.overflow;
}

}  // namespace fusebox
