// What a program relies on beyond its types: extents that a factor divides, each with the reason why it does. A launch
// or `bind_sizes` has checked them before any loop runs, so they hold at every point of every nest.
//
//   %y = reshape %x to [%h, %d] : %x's axis is split by %d   →   {divisor %d, of the axis, "%d divides the extent of
//   %y.r0:
//                                                                a reshape keeps every element"}
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "passes/nest/domain_values.h"

namespace fusebox {

struct DivisibilityFact {
  ValueId divisor;
  DomainId domain;  // whose extent it divides
  std::string reason;
};

// Those of one tensor: of the splits that a reshape made of it, and of a vectorized innermost loop of a copy.
std::vector<DivisibilityFact> facts_of(const Graph& g, TensorId t);

// Assumes the facts; `values` are of the tensor that they are about.
void assume(std::span<const DivisibilityFact> facts, DomainValues& values, Symbols& symbols, IndexAlgebra& algebra);

}  // namespace fusebox
