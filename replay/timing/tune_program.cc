#include "replay/timing/tune_program.h"

#include "ir/infer/bind.h"

namespace fusebox {

Tuned tune_program(const Graph& fusion, std::span<const Argument> arguments, const std::vector<RunTensor>& tensors,
                   const std::shared_ptr<Device>& device, const CompileOptions& options, const TimeOptions& timing,
                   const TuneOptions& how) {
  if (device->session() == nullptr)
    throw Error(ErrorCode::kUsage,
                "schedules are tuned by their times on a GPU, and the host executor has none; run with --on cuda where "
                "there is one",
                "@" + fusion.name);
  std::unique_ptr<GpuClock> own;
  TimeOptions times = timing;
  if (times.clock == nullptr) {
    own = std::make_unique<GpuClock>(device);
    times.clock = own.get();
  }
  bool is_first = true;
  const auto measure = [&](const Compiled& compiled) -> std::optional<double> {
    try {
      const double us = time_program({fusion, compiled, arguments, tensors}, device, times).whole_us.median;
      is_first = false;
      return us;
    } catch (const Error& e) {
      if (is_first || row_of(e.code).outcome == Outcome::kInternal) throw;
      return std::nullopt;
    }
  };
  return tune(fusion, bind_sizes(fusion, options.inputs), options, measure, how);
}

Tuned tune_arguments(const Graph& fusion, std::span<const Argument> arguments, const CompileOptions& options,
                     const TimeOptions& timing) {
  const std::shared_ptr<Device> device = make_cuda_device();
  std::vector<RunTensor> tensors;
  for (const Argument& a : arguments)
    if (!a.is_scalar) tensors.push_back(device->upload(a.tensor));
  return tune_program(fusion, arguments, tensors, device, options, timing);
}

}  // namespace fusebox
