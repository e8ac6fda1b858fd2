// A number that the environment may set: the first seed of a test's random cases, or how many there are.
//
//   const uint64_t count = setting("FUSEBOX_REWRITES", 800);
#pragma once

#include <cstdint>
#include <cstdlib>

namespace fusebox::testing {

inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace fusebox::testing
