// Replay: doing to one tensor's loops what was done to another's.
//
// The axes of the two tensors that are the same position are given as pairs; every schedule transform of `from` whose
// inputs have counterparts is found on `to` or made there, under the same names, numbered if taken. The loops of `to`
// come in the order of those of `from`; what has no counterpart follows, in its old order. Loops of `to` that are the
// same transforms of the same axes keep their parallel types; other schedule transforms of `to` are dropped.
//
//   // %b[i1] is broadcast into %y[i0, i1], whose loops are merge(i0, i1) split by 128 -> o, t
//   replay_loops(g, y, b, {{y.i0, y.i1}, {{y.i1, b.i1}}}, {.stand_in = StandIn::kAnyAxis});
//   // %b gets a loop broadcast i0 that stands for %y.i0, its merge with i1, the split, and the loops o, t
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

// Which axes of `from` that `to` lacks get a loop broadcast there, if a loop needs them that has, or precedes one that
// has, a counterpart. Reductions never do.
enum class StandIn : uint8_t { kNone, kBroadcastAxis, kAnyAxis };
// What the loops of `to` are made from: what they were made from before, or one of its domain lists.
enum class LoopStart : uint8_t { kAsBefore, kRoot, kLogical };

struct ReplayOptions {
  StandIn stand_in = StandIn::kNone;
  LoopStart start = LoopStart::kAsBefore;
  // The resizes of an op of `from` are replayed too; otherwise a resize's result stands for its input, on both sides.
  bool replay_resizes = false;
  Defects defects = {};
};

// Where a replay starts: domains of `from` of which none follows from another (its root if `to` is its producer, else
// its logical domain), and the counterparts of some.
struct ReplayAxes {
  std::vector<DomainId> from;
  std::vector<std::pair<DomainId, DomainId>> pairs;
};

// Returns whether every loop of `from` has a counterpart among the loops of `to`.
bool replay_loops(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, ReplayOptions options = {});
// The same for all siblings of `to`, which then have the loops of `to`.
bool replay_loops_of_op(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, ReplayOptions options = {});

}  // namespace fusebox
