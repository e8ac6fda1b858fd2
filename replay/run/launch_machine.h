// Runs a launch record (ir/module/launch_record.h) for the arguments of one call. The result is the resolved call that
// `resolve_call` makes of the host program, without the host program: no graph, no name and no map.
//
// Segments by ATen, streams, events and communication are encoded, and not run yet: the call is refused.
//
//   const ResolvedCall call = evaluate_launch(record, arguments, addresses);
#pragma once

#include <span>

#include "ir/module/launch_record.h"
#include "replay/run/resolved_call.h"

namespace fusebox {

struct LaunchMachineOptions {
  int64_t step_limit = int64_t{1} << 24;  // instructions
  Defects defects = {};                   // seeded, in the places of tensors
};

// `addresses` has one for each tensor among the arguments, in order. Throws the error of the first fact that does not hold:
// the code and place that the host program throws, with a message that has no numbers of the call in it. Throws kInvalidGraph
// for a record that uses what it has not made, kStepLimit for one that does not end.
ResolvedCall evaluate_launch(const LaunchRecord& record, std::span<const Argument> arguments,
                             std::span<const uint64_t> addresses, const LaunchMachineOptions& options = {});

}  // namespace fusebox
