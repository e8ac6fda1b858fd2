// Runs a compiled program, as tests of schedules do.
//
//   run_compiled(compile(g, sizes, options), inputs)[0].value.tensor    // on the host executor
//   output_digests(compiled, *gpu, inputs)                              // on any device
#pragma once

#include <span>
#include <vector>

#include "replay/run/aten_segment.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"

namespace fusebox::testing {

inline std::vector<ProgramOutput> run_compiled(const Compiled& c, Device& device, std::span<const Argument> inputs) {
  std::vector<NamedKernel> kernels;
  for (size_t k = 0; k < c.kernels.size(); ++k) kernels.push_back({c.segmentation.segments[k].name, &c.kernels[k]});
  HostProgramOptions host;
  host.run_aten = run_aten_segments(c);
  return run_host_program(c.host, kernels, device, inputs, host).outputs;
}

inline std::vector<ProgramOutput> run_compiled(const Compiled& c, std::span<const Argument> inputs) {
  const auto device = make_host_device({.step_limit = int64_t{1} << 32});
  return run_compiled(c, *device, inputs);
}

// What tells the outputs' bits.
inline std::vector<Digest> output_digests(const Compiled& c, Device& device, std::span<const Argument> inputs) {
  std::vector<Digest> digests;
  for (const ProgramOutput& out : run_compiled(c, device, inputs))
    digests.push_back(digest(contiguous_copy(out.value.tensor)));
  return digests;
}

}  // namespace fusebox::testing
