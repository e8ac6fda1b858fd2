// Equality and identity of programs a second time, from the rows of ir/module/fields.h alone: what digests, `==` and
// round trips are judged by. Nothing here is shared with canonical.h or compact.h.
//
// - `difference`: the first member in which two values differ, ids and dead nodes included; floats by their bits.
// - `programs_match`: whether two graphs are one program under other ids. Both are walked at once from their roots (the
//   signature, effects and reads, in order), and what is met on one side stands for what is met on the other. Sizes
//   have no order, equal constants are one, pure ops have a region and no place in it; a list that is left out says its
//   default. With `names`, names have to be the same too.
// - `segmentations_match`: whether two segmentations of a graph are one: segments and ops have no order beside what
// runs
//   first among equals, ops that nothing needs are none.
//
//   difference(a, b) == "values[3].constant.high";  programs_match(g, canonicalize(g))
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module/fields.h"
#include "serde/fields.h"

namespace fusebox::fuzz {

// T: Graph, StepList, Segmentation, InputSpecs, Bundle.
template <class T>
std::optional<std::string> difference(const T& a, const T& b);

struct MatchNames {
  bool names = false;
};
bool programs_match(const Graph& a, const Graph& b, MatchNames options = {});

// The values that the roots of a graph need.
std::vector<bool> needed_values(const Graph& g);
bool segmentations_match(const Graph& g, const Segmentation& a, const Segmentation& b);

}  // namespace fusebox::fuzz
