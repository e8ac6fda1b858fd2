// Whether two domains agree: a query about one pair, with its proof or, where one is found, a point where they differ.
// Answers are never closed transitively: that a is b and b is c at elements says nothing of holes, and a pair may be
// seen from other elements than another.
//
// *In a nest*: the domain of a tensor and that of a tensor that it is made of, or two of one tensor, have the same
// value at every loop point, holes included. *At elements*: the two are the same function of the elements of a tensor
// that both follow from: of the one itself that is made of the other (which it reads), else of the nearest that both
// are made of, else of the nearest that is made of both. Where the program reads along several ways, each that decides
// both must agree.
//
// Facts beyond arithmetic (facts.h) are used where the proof needs them, and named.
//
//   x{h*d}, y = reshape x to [h, d]; y.i0 by D outer → p, q;  z = exp x, z.i0 by D outer → p, q
//   agree_at_elements(g, y.p, z.p)   →   proved, if D divides h: "both are `i0 / 16`"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/algebra/difference.h"

namespace fusebox {

struct Reason {
  enum class Kind : uint8_t { kTheorem, kFact };
  Kind kind = Kind::kTheorem;
  std::string name;  // "split-of-split"; of a fact: "divisibility"
  std::string text;  // one sentence
  bool operator==(const Reason&) const = default;
};

struct Agreement {
  // They are functions of the same points: else nothing is proved, and `verdict` says why there is nothing to compare.
  bool comparable = false;
  bool proved = false;
  TensorId points;               // whose elements, or whose nest
  std::string a_value, b_value;  // as functions of them
  std::string verdict;           // one sentence
  std::vector<Reason> reasons;   // where proved
  size_t ways = 1;               // in which the program reads one from the other: all must agree
  std::optional<Difference> difference;
};

Agreement agree_at_elements(const Graph& g, DomainId a, DomainId b);
// Throws what `plan_nests` throws where the schedule has no nests.
Agreement agree_in_nest(const Graph& g, DomainId a, DomainId b);

}  // namespace fusebox
