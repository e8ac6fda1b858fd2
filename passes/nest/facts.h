// Divisibility facts: extents that a factor divides, each with the reason. A program relies on them beyond its types. A
// launch or `bind_sizes` has checked them before any loop runs, so they hold at every point of every nest.
//
//   %y = reshape %x to [%h, %d], which splits its root axis r0 by %d   →
//   {divisor %d, domain %y.r0, "%d divides the extent of %y.r0: a reshape keeps every element"}
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "passes/nest/domain_values.h"

namespace fusebox {

struct DivisibilityFact {
  ValueId divisor;
  DomainId domain;  // the divisor divides its extent
  std::string reason;
};

// A fact about sizes that a schedule states with `assume`. The launch checks it before anything runs, so it holds at
// every point of every nest.
//
//   %r = floor_mod %n, 8   %p = eq %r, 0   assume %p   →   {kMultiple, %n, 8}
struct StatedFact {
  enum class Kind : uint8_t { kMultiple, kAtMost, kBelow, kEqual } kind;
  ValueId value, bound;  // %n is a multiple of, at most, below, equal to the bound
  std::string reason;
};
std::string_view text(StatedFact::Kind kind);
std::vector<StatedFact> stated_facts(const Graph& g);

// Assumes the facts. An equality of two sizes is known already: they have one symbol (ExtentClasses).
void assume(std::span<const StatedFact> facts, Symbols& symbols, IndexAlgebra& algebra, const Defects& defects = {});

// The facts of one tensor: from the splits of a reshape, and from the vectorized innermost loop of a copy.
std::vector<DivisibilityFact> facts_of(const Graph& g, TensorId t);

// Assumes the facts. `values` belong to the tensor of the facts.
void assume(std::span<const DivisibilityFact> facts, DomainValues& values, Symbols& symbols, IndexAlgebra& algebra);

}  // namespace fusebox
