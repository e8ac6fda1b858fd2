// The heuristics that differ from given ones in one choice, for a search by measured times.
//
// Invariants: a neighbour states the same facts, so it serves the same launches. Whether a legal schedule follows from
// it, only the schedule tells. The order is always the same, and the given heuristics are not among their neighbours.
//
//   // persistent … warps 4 chunks 2 rows 1 …   →   warps 8 chunks 1;  warps 2 chunks 4;  rows 2
#pragma once

#include <optional>
#include <vector>

#include "passes/schedule/heuristics.h"

namespace fusebox {

std::vector<Heuristics> neighbours(const Heuristics& h);
// The neighbour whose vectors are half as wide; nothing if there are none.
std::optional<Heuristics> with_narrower_vectors(const Heuristics& h);
// The same without stated multiples of sizes, or if none is stated, with one chunk for a thread of a kernel without
// reductions; nothing if it has no more than one.
std::optional<Heuristics> plainer(const Heuristics& h);

}  // namespace fusebox
