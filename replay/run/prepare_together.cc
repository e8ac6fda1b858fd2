#include "replay/run/prepare_together.h"

#include <algorithm>
#include <thread>

namespace fusebox {

void prepare_together(Device& device, std::span<const Graph> kernels) {
  constexpr int kMostCompilers = 16;  // threads; each takes some hundred megabytes
  std::vector<const Graph*> wanted;
  for (const Graph& kernel : kernels)
    if (!kernel.ops.empty()) wanted.push_back(&kernel);
  if (wanted.size() < 2) return;
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostCompilers);
  device.prepare_all(wanted, {.threads = threads});
}

}  // namespace fusebox
