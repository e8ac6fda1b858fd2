// Times repeated runs of a compiled program, on a GPU or on the host executor.
//
// On a GPU: events around the whole and, in runs of their own, around each kernel (gpu_clock.h). The program is a
// resolved call (resolved_call.h), as repeated calls are, so host time is the time to enqueue it. An event stands in
// each kernel's time.
// On the host executor: the wall clock of the interpreted host program and, within it, of each launch. The executor
// checks every access; its times say nothing about a GPU.
//
// Invariants: the first run of each kind is not counted. All runs are on the same memory: an in-place output reads what
// the run before left, as its values do not matter here.
//
//   Timing t = time_program({fusion, compiled, arguments, inputs}, device, {.runs = 20});
//   t.whole.median, t.bytes.total()
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "passes/pipeline/pipeline.h"
#include "replay/device/device.h"
#include "replay/run/run.h"
#include "replay/timing/gpu_clock.h"
#include "replay/timing/moved_bytes.h"
#include "replay/timing/spread.h"

namespace fusebox {

struct KernelTiming {
  std::string name;  // of the kernel; "copy" and "clear" for work between kernels, "ATen NAME" for a segment by ATen
  int64_t launches = 0;  // in a run
  Spread us;             // of all its launches together
};

// The memory rates of the device that a program is measured beside.
struct MeasuredFloor {
  std::string gpu;
  double copy_rate = 0;  // bytes in a microsecond
  double empty_us = 0;   // two events with nothing between them
};

struct Timing {
  Executor executor = Executor::kHost;
  int runs = 0;
  int64_t launches = 0;  // of kernels, in a run
  Spread whole_us;
  Spread kernels_us;  // the sum of the kernels of a run
  Spread host_us;     // GPU: to enqueue the run; host executor: the whole without the kernels
  std::vector<KernelTiming> kernels;
  MovedBytes bytes;
  std::optional<MeasuredFloor> measured;  // on a GPU

  // The time in which a copy moves as many bytes. Nothing without a GPU: a floor is measured, or not known.
  std::optional<double> floor_us() const;
  // floor_us by the median of the whole.
  std::optional<double> fraction() const;
};

struct TimedProgram {
  const Graph& fusion;
  const Compiled& compiled;
  std::span<const Argument> arguments;
  std::vector<RunTensor> inputs;  // the tensors among them, in the memory of the device
};

struct TimeOptions {
  int runs = 20;
  GpuClock* clock = nullptr;  // of the same device, on a GPU; null: one is made for this call
};

// Throws kUnsupportedOp on a GPU for a program that cannot be repeated without its host program, such as one with a
// segment by ATen; and the errors of the run.
Timing time_program(const TimedProgram& program, const std::shared_ptr<Device>& device, const TimeOptions& options);

// Times a run that has succeeded, on its executor, with new memory. Throws kUsage for executor aten.
Timing time_run(const Run& run, std::span<const Argument> arguments, int runs, int threads);

}  // namespace fusebox
