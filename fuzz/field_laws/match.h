// A second implementation of equality and identity of programs. It uses only the rows of ir/module/fields.h and shares
// nothing with canonical.h or compact.h, so it can judge digests, `==` and round trips.
//
// - `difference`: the first member in which two values differ, including ids and dead nodes; compares floats by bits.
// - `programs_match`: whether two graphs are the same program up to ids. Walks both from their roots (the signature,
//   effects and reads, in order) and pairs the nodes that it meets. Sizes have no order, equal constants are one, pure
//   ops have a region but no place in it, and an empty list equals its default. With `names`, names must agree too.
// - `segmentations_match`: whether two segmentations of a graph are the same. The order of segments and ops does not
//   matter, nor do ops that nothing needs.
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

// For each value of the graph: whether its roots need it.
std::vector<bool> needed_values(const Graph& g);
bool segmentations_match(const Graph& g, const Segmentation& a, const Segmentation& b);

}  // namespace fusebox::fuzz
