#include "fuzz/base/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace fusebox::fuzz {
namespace {

// The memory that one process takes: on the host alone, on the host beside a GPU, and on the GPU. ATen is loaded.
constexpr int64_t kHostBytes = int64_t{512} << 20;
constexpr int64_t kGpuHostBytes = int64_t{1} << 30;
constexpr int64_t kGpuBytes = int64_t{1} << 30;

// A container's share of the processors: `max 100000`, or `150000 100000` for one and a half.
int container_processors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (int64_t kib = 0; file >> name >> kib; std::getline(file, unit))
    if (name == "MemAvailable:") return kib << 10;
  return 0;
}

}  // namespace

Machine this_machine() {
  Machine m;
  m.processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (const int share = container_processors(); share > 0) m.processors = std::min(m.processors, share);
  m.memory_bytes = free_memory();
  return m;
}

int default_jobs(const Machine& machine, const JobOptions& options) {
  int64_t jobs = machine.processors;
  const auto bound = [&](int64_t bytes, int64_t each) {
    if (bytes > 0) jobs = std::min(jobs, bytes / each);
  };
  bound(machine.memory_bytes, options.on_gpu ? kGpuHostBytes : kHostBytes);
  if (options.on_gpu) bound(options.gpu_bytes, kGpuBytes);
  return static_cast<int>(std::max<int64_t>(jobs, 1));
}

}  // namespace fusebox::fuzz
