// Agreement asks whether two domains are the same. The answer concerns one pair. It comes with a proof or, if one is
// found, with a point at which the two differ. Answers are never closed transitively: agreement at elements says
// nothing of holes, and each pair may be seen from other elements.
//
// *In a nest*: two domains of one tensor, or of a tensor and one that it is made from, have the same value at every
// loop point, holes included. *At elements*: both are the same function of the elements of one tensor. If one of their
// two tensors is made from the other, and so reads it, that is the tensor. Otherwise it is the nearest tensor that both
// are made from, or else the nearest that is made from both. If the program reads along several ways, every way that
// decides both must agree.
//
// A proof uses facts beyond arithmetic (facts.h) only if it needs them, and names them.
//
//   %y = reshape %x to [%h, 6], %u = exp %y, %z = exp %x;  h = 4*d;  %u.i0 and %z.i0 split by 4 outer → p, q
//   agree_at_elements(g, u.p, z.p)   →   proved: "both are `%x.i0 / (6*d)` at every element of %x"
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
  std::string name;  // "split-of-split"; "divisibility" for a fact
  std::string text;  // one sentence
  bool operator==(const Reason&) const = default;
};

struct Agreement {
  // Whether both are functions of the same points. If not, nothing is proved, and `verdict` says why.
  bool comparable = false;
  bool proved = false;
  TensorId points;               // the tensor whose elements, or whose nest, are the points
  std::string a_value, b_value;  // as functions of the points
  std::string verdict;           // one sentence
  std::vector<Reason> reasons;   // if proved
  size_t ways = 1;               // the ways in which the program reads one from the other; all must agree
  std::optional<Difference> difference;
};

Agreement agree_at_elements(const Graph& g, DomainId a, DomainId b);
// Throws what `plan_nests` throws if the schedule has no nests.
Agreement agree_in_nest(const Graph& g, DomainId a, DomainId b);

}  // namespace fusebox
