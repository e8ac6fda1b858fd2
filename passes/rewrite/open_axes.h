// Axes that concretization may make expanded broadcasts, and what decides it for each. Such a broadcast has the stride 0,
// so a value with another layout must not take its place, even if all elements and extents are the same.
//
// The *decider* of an axis is the symbolic axis of an expand, broadcast_in_dim or reshape that it follows from. Slices,
// permutes and pointwise ops pass it on, and so does a reshape for an axis that it keeps. Axes that a reshape merges or
// splits, or a pad cuts or adds to, are laid out one by one and have none. An axis that operands with several deciders give
// decides for itself.
//
//   // %e = expand %x to [%n] : f32[symbolic %n];  %s = slice %e … to [%m] …
//   // %r = reshape %s to [%m];  %q = reshape %s to [2, %h]
//   OpenAxes open(g);
//   open.decider(g, e.i0)   // %e.i0
//   open.decider(g, s.i0)   // %e.i0
//   open.decider(g, r.i0)   // %e.i0
//   open.decider(g, q.i0)   // none
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

class OpenAxes {
 public:
  explicit OpenAxes(const Graph& g);
  // The axis is one of a tensor of `g`: the graph of the constructor, or one with more ops behind its last one.
  DomainId decider(const Graph& g, DomainId axis);

 private:
  void learn(const Graph& g, OpId op);

  std::vector<DomainId> decider_;  // by domain
  size_t learned_ = 0;             // ops
  bool is_any_ = false;
};

}  // namespace fusebox
