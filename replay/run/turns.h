// Calls of one program at the same time, on the host: each makes one step in turn, as the streams of a GPU may. Each call has its
// outputs and an arena of its own, laid out as the resolved call says, as a fast call's are on a GPU.
//
// Invariant: the steps of one call run in their order; the turns are always the same.
//
//   auto tensors = run_in_turns(resolved, kernels, *device, {{arguments, inputs}, {other, other_inputs}});
//   device->download(tensors[1][resolved.outputs[0].slot], "%y")
#pragma once

#include <span>
#include <vector>

#include "replay/run/resolved_call.h"

namespace fusebox {

struct Turn {
  std::span<const Argument> arguments;
  std::span<const RunTensor> inputs;  // the tensors among them, on the device
};

struct TurnOptions {
  Defects defects = {};  // seeded, in the memory of calls
};

// The sizes, strides and alignments of all calls are those that the call was resolved for. `device` is a host device.
// Returns the tensors by call and slot.
std::vector<std::vector<RunTensor>> run_in_turns(const ResolvedCall& call, std::span<const NamedKernel> kernels,
                                                 Device& device, std::span<const Turn> turns,
                                                 const TurnOptions& options = {});

}  // namespace fusebox
