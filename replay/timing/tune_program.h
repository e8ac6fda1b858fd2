// Tunes a program's automatic plan by its times on a device (tune.h).
//
//   Tuned t = tune_program(fusion, arguments, tensors, device, options, {.runs = 10});
#pragma once

#include "passes/pipeline/tune.h"
#include "replay/timing/time_program.h"

namespace fusebox {

// `tensors` are the inputs' tensors in the device's memory, as in TimedProgram. A neighbour that the device refuses to
// run is passed over. Throws kUsage for a device that is no GPU: the host executor's times say nothing about one. Throws
// what time_program throws for the plan as the schedulers chose it, and what `tune` throws.
Tuned tune_program(const Graph& fusion, std::span<const Argument> arguments, const std::vector<RunTensor>& tensors,
                   const std::shared_ptr<Device>& device, const CompileOptions& options, const TimeOptions& timing,
                   const TuneOptions& how = {});

// The same with new memory on the default GPU.
Tuned tune_arguments(const Graph& fusion, std::span<const Argument> arguments, const CompileOptions& options,
                     const TimeOptions& timing);

}  // namespace fusebox
