// The choices that the schedulers of reductions make by classes of sizes (reduction_loops.h lists them).
#pragma once

#include <optional>
#include <string>

#include "passes/schedule/heuristics.h"
#include "passes/schedule/reduction_access.h"

namespace fusebox {

// The rows that a block keeps in registers, at most: it has them along block.z.
constexpr int64_t kMostKeptRows = 64;

// One pass over the reduced axes. Few long rows are shared by several blocks.
Heuristics choose_one_pass(const ScheduleView& view, const ReductionSpace& space);

// Several passes over the reduced axes: in registers if a block's hold a row. Nothing if too few blocks would have to
// walk too long; `why` then says so.
std::optional<Heuristics> choose_passes(const ScheduleView& view, const ReductionSpace& space, std::string& why);

// Other choices for several passes, for a search that measures: clusters of blocks, registers, rows that are read again.
std::vector<Heuristics> other_passes(const ScheduleView& view, const ReductionSpace& space);

// Rows in registers, walked by threads that sum columns too. Nothing if the row does not fit or rows are few; `why`
// then says so.
std::optional<Heuristics> choose_walks(const ScheduleView& view, const ReductionSpace& space, std::string& why);

}  // namespace fusebox
