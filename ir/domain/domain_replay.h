// Replay: applies the transforms of one tensor's loops to another tensor's loops.
//
// The caller gives pairs of axes that are the same position in both tensors. For each schedule transform of `from`
// whose inputs have counterparts, the replay finds the same transform on `to` or makes it there. New domains get the
// names of their counterparts, numbered if taken. A broadcast has its element at every index, so the counterpart of a
// resize's output is the broadcast itself where that is the counterpart of its input.
//
// Invariants: the loops of `to` come in the order of their counterparts; loops without a counterpart follow in their
// old order. If `to` has a transform already, its outputs keep their parallel types. Other schedule transforms of `to`
// are dropped.
//
//   // %b[i1] is broadcast into %y[i0, i1], whose loops are merge(i0, i1) split by 128 -> o, t
//   replay_loops(g, y, b, {{y.i0, y.i1}, {{y.i1, b.i1}}}, {.stand_in = StandIn::kAnyAxis});
//   // %b gets a loop broadcast i0 that stands for %y.i0, its merge with i1, the split, and the loops o, t
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/domain/joined_axis.h"
#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

// If `to` lacks an axis of `from`, a loop broadcast may stand in for it. This says for which axes. An axis gets one
// only if it belongs to a loop of `from` that shares an axis with `to`, or that precedes such a loop. A reduction gets
// none.
enum class StandIn : uint8_t { kNone, kBroadcastAxis, kAnyAxis };
// The domains that the new loops of `to` start from: the same as before (loop_base), its root, or its logical domain.
enum class LoopStart : uint8_t { kAsBefore, kRoot, kLogical };

struct LoopReplayOptions {
  StandIn stand_in = StandIn::kNone;
  LoopStart start = LoopStart::kAsBefore;
  // Replays the resizes of the op that makes `from` too. Without it, a resize's output counts as its input, in both
  // tensors.
  bool replay_resizes = false;
  Defects defects = {};
};

// The start of a replay. Between a producer and its consumer, `from` holds the root if `to` is the producer, else the
// logical domain.
struct ReplayAxes {
  std::vector<DomainId> from;                        // domains of the tensor `from`
  std::vector<std::pair<DomainId, DomainId>> pairs;  // some of them, each with its counterpart in `to`
  // `from` is a cat and `to` its operand: the counterpart of the joined axis is a resize, which the replay makes.
  std::optional<JoinedAxis> joined = {};
  // With LoopStart::kAsBefore: the domains of `to` that its loops start from, if they are others than before.
  std::vector<DomainId> base = {};
};

// Returns whether every loop of `from` has a counterpart among the loops of `to`. With StandIn::kAnyAxis, loops further inside than the last
// one that shares an axis with `to` need none: `to` is the same in all their iterations.
bool replay_loops(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, LoopReplayOptions options = {});
// The same for `to` and all its siblings. The siblings get the loops of `to`.
bool replay_loops_of_op(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, LoopReplayOptions options = {});

}  // namespace fusebox
