#include "replay/timing/spread.h"

#include <algorithm>

namespace fusebox {

Spread Spread::of(std::vector<double> measured) {
  Spread s;
  if (measured.empty()) return s;
  std::ranges::sort(measured);
  const size_t last = measured.size() - 1;
  const auto at = [&](double part) { return measured[static_cast<size_t>(part * static_cast<double>(last) + 0.5)]; };
  s.median = (measured[last / 2] + measured[(last + 1) / 2]) / 2;
  s.p10 = at(0.1);
  s.p90 = at(0.9);
  s.count = static_cast<int64_t>(measured.size());
  return s;
}

}  // namespace fusebox
