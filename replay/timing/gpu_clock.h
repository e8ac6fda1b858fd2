// Times of work on a GPU, by events.
//
// Before the work, a kernel keeps the GPU busy for longer than the host needs to enqueue the work, so that the time
// between the events has no gap for the host. Another kernel reads 256 MiB, so that the work finds nothing of its own in
// the L2 cache; it only reads, so it leaves no line that the work would have to write back. Two events with nothing
// between them measure `empty_us`, which no time leaves out.
//
//   GpuClock clock(device);
//   clock.measure([&] { call.start(addresses); }).gpu_us
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "replay/device/device.h"

namespace fusebox {

class GpuClock {
 public:
  // `device` is a GPU's. Throws kNoDevice, kModuleMissing without NVRTC, kOutOfMemory.
  explicit GpuClock(std::shared_ptr<Device> device);
  GpuClock(const GpuClock&) = delete;
  GpuClock& operator=(const GpuClock&) = delete;
  ~GpuClock();

  struct Measured {
    double host_us = 0;            // to enqueue the work
    std::vector<double> parts_us;  // of each part, on the GPU
  };
  // Runs the parts one after another, with an event before the first and after each. `wait_us` is how long the GPU is
  // kept busy before; the host should need less to enqueue all.
  Measured measure(std::span<const std::function<void()>> parts, double wait_us);
  // A wait that is long enough for these parts: half as long again as the host needs at most.
  double wait_for(std::span<const std::function<void()>> parts);

  double empty_us() const { return empty_us_; }
  // Bytes in a microsecond that a copy of 2 GiB moves (an eighth of the memory, if that is less), read and written.
  double copy_rate() const { return copy_rate_; }
  std::string_view gpu() const { return session_.device().name; }

 private:
  void wait(double us);
  void read();
  double measure_copy();

  std::shared_ptr<Device> device_;
  CudaSession& session_;
  std::vector<CudaKernel> kernels_;  // that waits, that reads
  CudaPointer flushed_ = 0, sink_ = 0;
  std::vector<CudaEvent> events_;
  double empty_us_ = 0, copy_rate_ = 0;
};

}  // namespace fusebox
