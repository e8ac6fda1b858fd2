// The errors of host programs. Both machines that run them use the same words: the interpreter (replay/run), and the
// launch record (passes/host/launch_code), which carries the errors of its instructions.
#pragma once

#include "ir/graph/graph.h"
#include "ir/table/error.h"

namespace fusebox {

// Ops of host programs that no machine runs yet: parts of meshes, streams, events and communication.
#define FUSEBOX_OPEN_HOST_OPS  \
  FUSEBOX_OPEN_HOST_VALUE_OPS: \
  case OpKind::kSetStream:     \
  case OpKind::kSynchronize:   \
  case OpKind::kWaitEvent:     \
  case OpKind::kPost:          \
  case OpKind::kWait
// The open ops that have results.
#define FUSEBOX_OPEN_HOST_VALUE_OPS                  \
  OpKind::kAliasSelect : case OpKind::kCreateStream: \
  case OpKind::kGetStream:                           \
  case OpKind::kRecordEvent:                         \
  case OpKind::kCommunicate

// A `check` whose condition does not hold.
Error failed_check(const Graph& host, const Op& check);
// A scalar op that the host does not compute.
Error not_computed(const Graph& host, const Op& op);

}  // namespace fusebox
