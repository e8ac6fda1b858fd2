// The spread of repeated measurements: the median, and the values that a tenth of them lies below and above.
//
//   Spread::of({4, 1, 2, 3}).median   // 2.5
#pragma once

#include <cstdint>
#include <vector>

namespace fusebox {

struct Spread {
  double median = 0;        // of an even count: the mean of the two in the middle
  double p10 = 0, p90 = 0;  // the measurements nearest to these places in the order
  int64_t count = 0;

  static Spread of(std::vector<double> measured);
};

}  // namespace fusebox
