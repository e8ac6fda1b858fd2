// The end of the numbers of a floating dtype.
//
//   overflow_of(Dtype::kFloat) == 0x1p128;  overflow_of(Dtype::kFloat8E4m3) == 512
#pragma once

#include <cfloat>
#include <cmath>

#include "ir/table/dtype.h"
#include "ir/table/families.h"

namespace fusebox {

// The power of two above the largest number of the dtype; for double its largest number. It stands for an infinity in
// comparisons.
inline double overflow_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kHalf:
    case Dtype::kFloat8E5m2:
      return 0x1p16;
    case Dtype::kBfloat16:
    case Dtype::kFloat:
    case Dtype::kComplexFloat:
      return 0x1p128;
    case Dtype::kFloat8E4m3:
      return 0x1p9;
    case Dtype::kDouble:
    case Dtype::kComplexDouble:
    case Dtype::kFloat8E8m0:
    case Dtype::kFloat4E2m1:
    case Dtype::kFloat4E2m1x2:
    case Dtype::kBool:
    case FUSEBOX_INTEGER_DTYPES:
      break;
  }
  return DBL_MAX;
}

}  // namespace fusebox
