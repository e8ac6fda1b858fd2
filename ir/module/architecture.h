// What the name of a GPU's architecture says.
//
//   architecture_number("sm_90a")   // 90
//   has_clusters("sm_89")           // false
#pragma once

#include <string_view>

namespace fusebox {

// The number of an architecture such as sm_90a. 0: its name has none.
constexpr int architecture_number(std::string_view architecture) {
  int number = 0;
  for (const char c : architecture)
    if (c >= '0' && c <= '9') number = 10 * number + (c - '0');
  return number;
}

// Whether its blocks can run in clusters.
constexpr bool has_clusters(std::string_view architecture) {
  constexpr int kFirstWithClusters = 90;
  return architecture_number(architecture) >= kFirstWithClusters;
}

// Whether a kernel can begin before the launches in front of it have ended, and wait for these.
constexpr bool has_dependent_launch(std::string_view architecture) { return has_clusters(architecture); }

}  // namespace fusebox
