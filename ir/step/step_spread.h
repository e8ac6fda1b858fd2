// How what is done to one tensor spreads to others: from op to op, over producers, consumers, and ops that read the
// same input, each op being reached over the edge that keeps the most of the first tensor's axes. Not for use outside
// ir/.
//
//   // %r = sum %y over [1], %b = broadcast %r, %z = add %b, %y: from %y, %z is reached directly, %b from %z, not from
//   %r for (const SpreadEdge& e : spread(g, y, {})) replay(e);
#pragma once

#include <span>
#include <vector>

#include "ir/domain/domain_replay.h"
#include "ir/graph/graph.h"

namespace fusebox {

struct SpreadEdge {
  TensorId from, to;                  // `to` is the first result of its op, or the one that `from` is made from
  StandIn stand_in = StandIn::kNone;  // what a missing axis of `to` may become
  ReplayAxes axes;                    // the joined axis of a cat counts as the same
};

struct SpreadOptions {
  std::span<const TensorId> only;   // empty: everything connected
  std::span<const TensorId> until;  // reached, but not gone beyond
  bool through_fixed = false;       // beyond ops whose loops inlining has fixed
};

// The edges in the order in which they are to be followed; inputs are gone through, never reached.
std::vector<SpreadEdge> spread(const Graph& g, TensorId from, const SpreadOptions& options);

}  // namespace fusebox
