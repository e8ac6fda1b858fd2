// How often the loops of a kernel run, as far as constants say.
//
//   for 0, 24, 1 { index %i   for 0, 32, 1 { index %j   store %T0 at … } }
//   known_count of the outer loop: 24; ops_written_out of it, if both loops are copied and stores count: 24 · 32
#pragma once

#include <functional>
#include <optional>

#include "ir/graph/graph.h"

namespace fusebox {

// The iterations of a loop whose bounds are constants, or of a strip: it begins at the index of the loop around it and has a
// constant length. Nothing for any other loop, and for one without iterations.
std::optional<int64_t> known_count(const Graph& kernel, const Op& loop);

struct WrittenOut {
  std::function<bool(const Op&)> copies;  // whether a loop of a known count is written out
  std::function<bool(const Op&)> counts;  // whether an op counts
};
// The ops of a region with such loops written out. `most + 1` stands for any larger number.
int64_t ops_written_out(const Graph& kernel, RegionId region, int64_t most, const WrittenOut& how);

}  // namespace fusebox
