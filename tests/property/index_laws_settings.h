// The first seed and the number of the index laws' random cases: FUSEBOX_FIRST_SEED, FUSEBOX_CASE_FACTOR.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace fusebox::index_laws {

inline uint32_t first_seed() {
  const char* seed = std::getenv("FUSEBOX_FIRST_SEED");
  return seed ? static_cast<uint32_t>(std::strtoul(seed, nullptr, 10)) : 1;
}

inline int case_factor() {
  const char* factor = std::getenv("FUSEBOX_CASE_FACTOR");
  return factor ? std::max(1, std::atoi(factor)) : 1;
}

}  // namespace fusebox::index_laws
