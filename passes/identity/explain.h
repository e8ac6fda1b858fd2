// Explains why two domains are one, or are not, in every meaning of "one": in a nest, at elements, in each id graph.
//
//   Explanation e = explain(g, f, b);
//   e.elements.proved, e.nest.difference
//   e[IdGraphKind::kAlmostExact].because   // "it would make %y.f and %y.b one: …"
#pragma once

#include <array>
#include <string>
#include <vector>

#include "passes/identity/agreement.h"
#include "passes/identity/id_graphs.h"

namespace fusebox {

struct Explanation {
  struct InGraph {
    bool one = false;
    std::vector<std::string> because;  // sentences
  };
  // Not empty if the schedule has no nests. The explanation then describes the schedule without its inlining.
  std::string note;
  Agreement nest, elements;
  std::array<InGraph, 5> graphs;  // by IdGraphKind

  const InGraph& operator[](IdGraphKind kind) const { return graphs[static_cast<size_t>(kind)]; }
};

Explanation explain(const Graph& g, DomainId a, DomainId b);

}  // namespace fusebox
