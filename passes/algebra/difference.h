// Searches for a point at which two forms differ. It tries small sizes for the symbols. For each choice of sizes it
// tries the points of the loops that the forms depend on: all of them, or some if there are too many, and a few once
// many points of other sizes have been tried. If any loop has extent 0, there is no point. Finding none proves nothing.
//
//   b split by 8 → f{1}, g{8}
//   find_difference(algebra, graph, f, b, loops, {})   →   {sizes {}, point {%y.g = 1}, a = 0, b = 1}
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox {

struct NamedValue {
  std::string name;
  int64_t value = 0;
  bool operator==(const NamedValue&) const = default;
};

struct Difference {
  std::vector<NamedValue> sizes;  // of the symbols
  std::vector<NamedValue> point;
  int64_t a = 0, b = 0;  // the two values there
};

struct LoopVariable {
  int id = 0;
  std::string name;
};

// Symbols are the graph's scalars, under the ids of their values. `divides` holds pairs of divisor and value; every
// choice of sizes obeys them.
std::optional<Difference> find_difference(IndexAlgebra& algebra, const Graph& g, Form a, Form b,
                                          std::span<const LoopVariable> loops,
                                          std::span<const std::pair<Form, Form>> divides);

}  // namespace fusebox
