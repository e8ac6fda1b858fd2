// Finds the order in which a change of one tensor spreads to others: from op to op, over producers, consumers and ops
// that read the same input (or the same two, each of which may give other axes). Each op is reached over the edge that keeps the most axes of the first tensor. Not for use
// outside ir/.
//
//   // %r = sum %y over [1]
//   // %b = broadcast %r
//   // %z = add %b, %y
//   spread(g, y, {})   // %y → %r, %y → %z, %z → %b: the edge %r → %b would keep fewer axes
#pragma once

#include <span>
#include <vector>

#include "ir/domain/domain_replay.h"
#include "ir/graph/graph.h"

namespace fusebox {

// Of two readers of one input, or of two inputs together, `to` gets a loop broadcast for any axis that it lacks.
struct SpreadEdge {
  TensorId from, to;                  // `to` is an operand of the op of `from`, or the first result of another op
  StandIn stand_in = StandIn::kNone;  // the missing axes of `to` that get a loop broadcast
  ReplayAxes axes;                    // the joined axis of a cat counts as the same position
};

struct SpreadOptions {
  std::span<const TensorId> only;   // reaches only these; empty: all that are connected
  std::span<const TensorId> until;  // reaches these, but does not go beyond them
  bool through_fixed = false;       // goes beyond ops whose loops inlining has fixed
};

// The edges in the order in which to follow them. They go through inputs and never end at one.
std::vector<SpreadEdge> spread(const Graph& g, TensorId from, const SpreadOptions& options);

}  // namespace fusebox
