#include "replay/timing/gpu_clock.h"

#include <algorithm>
#include <chrono>

#include "replay/device/cuda_loader.h"
#include "replay/timing/spread.h"

namespace fusebox {
namespace {

constexpr int64_t kFlushBytes = int64_t{256} << 20;
constexpr int64_t kCopyBytes = int64_t{2} << 30;
constexpr int kCopies = 9, kEmpty = 21;
constexpr double kWarmUpUs = 3e5;

// The globaltimer counts nanoseconds. The sum is stored if it has one value out of 2^32, so that the reads stay.
constexpr const char* kText = R"(
__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}
extern "C" __global__ void timing_wait(unsigned long long ns) {
  const unsigned long long start = now();
  while (now() - start < ns) {
  }
}
extern "C" __global__ void timing_read(const uint4* from, unsigned long long count, unsigned* sink) {
  unsigned sum = 0;
  const unsigned long long step = 256ull * gridDim.x;
  for (unsigned long long i = 256ull * blockIdx.x + threadIdx.x; i < count; i += step) {
    const uint4 v = from[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 0x9e3779b9u) *sink = sum;
}
)";

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

GpuClock::GpuClock(std::shared_ptr<Device> device) : device_(std::move(device)), session_(*device_->session()) {
  const CudaBinary binary =
      cuda_backend().compile({.text = kText, .name = "timing.cu", .architecture = session_.device().architecture});
  const std::string entries[] = {"timing_wait", "timing_read"};
  kernels_ = session_.load_all(binary.bytes, entries);
  flushed_ = session_.allocate(kFlushBytes);
  sink_ = session_.allocate(256);
  session_.fill(flushed_, 0, kFlushBytes);
  // A GPU's clocks fall while the host compiles.
  for (const double start = now_us(); now_us() - start < kWarmUpUs; session_.synchronize(nullptr))
    for (int i = 0; i < 20; ++i) read();
  const std::function<void()> nothing = [] {};
  std::vector<double> empty;
  for (int i = 0; i < kEmpty; ++i) empty.push_back(measure({&nothing, 1}, 50).parts_us[0]);
  empty_us_ = Spread::of(std::move(empty)).median;
  copy_rate_ = measure_copy();
}

GpuClock::~GpuClock() {
  try {
    session_.synchronize(nullptr);
    for (const CudaEvent event : events_) session_.destroy_event(event);
    session_.free(flushed_);
    session_.free(sink_);
    session_.unload(kernels_[0]);  // both are of one module
  } catch (const Error&) {
    // The device failed before; there is nothing left to free.
  }
}

void GpuClock::wait(double us) {
  uint64_t ns = static_cast<uint64_t>(1000 * us);
  void* const arguments[] = {&ns};
  session_.launch(kernels_[0], {.arguments = arguments});
}

void GpuClock::read() {
  uint64_t count = kFlushBytes / 16;
  void* const arguments[] = {&flushed_, &count, &sink_};
  session_.launch(
      kernels_[1],
      {.grid = {8 * int64_t{session_.device().multiprocessors}, 1, 1}, .block = {256, 1, 1}, .arguments = arguments});
}

double GpuClock::wait_for(std::span<const std::function<void()>> parts) {
  double longest = 0;
  for (int i = 0; i < 3; ++i) {
    session_.synchronize(nullptr);
    longest = std::max(longest, measure(parts, 0).host_us);
  }
  return 50 + 1.5 * longest;
}

GpuClock::Measured GpuClock::measure(std::span<const std::function<void()>> parts, double wait_us) {
  while (events_.size() <= parts.size()) events_.push_back(session_.create_event());
  Measured result;
  if (wait_us > 0) wait(wait_us);
  read();
  const double start = now_us();
  session_.record(events_[0]);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i]();
    session_.record(events_[i + 1]);
  }
  result.host_us = now_us() - start;
  for (size_t i = 0; i < parts.size(); ++i) result.parts_us.push_back(session_.elapsed_us(events_[i], events_[i + 1]));
  return result;
}

double GpuClock::measure_copy() {
  const int64_t bytes = std::min(kCopyBytes, session_.device().memory_bytes / 8);
  const RunTensor from = device_->allocate(Dtype::kUint8, {bytes}, {1}, false);
  const RunTensor to = device_->allocate(Dtype::kUint8, {bytes}, {1}, false);
  const std::function<void()> copy = [&] { device_->copy(to, from); };
  std::vector<double> times;
  measure({&copy, 1}, 50);
  for (int i = 0; i < kCopies; ++i) times.push_back(measure({&copy, 1}, 50).parts_us[0]);
  return 2 * static_cast<double>(bytes) / Spread::of(std::move(times)).median;
}

}  // namespace fusebox
