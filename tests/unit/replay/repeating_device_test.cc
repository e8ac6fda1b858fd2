// A repeated run launches and copies again, and clears again what kernels do more with than count their blocks.
#include "replay/device/repeating_device.h"

#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "tests/unit/replay/host_session.h"
#include "tests/unit/replay/idle_gpu.h"

namespace fusebox {
namespace {

class NotingGpu : public testing::IdleGpu<testing::HostSession> {
 public:
  RunTensor allocate(Dtype, std::vector<int64_t>, std::vector<int64_t>, bool) override {
    RunTensor t;
    t.pointer = next += 256;
    return t;
  }
  void copy(const RunTensor&, const RunTensor&) override { ++copies; }
  void launch(size_t, const LaunchDims&, std::span<const RunArgument>) override { ++launches; }

  CudaPointer next = 0;
  int copies = 0, launches = 0;
};

const Module kKernels = parse_module(R"(kernel @counts index 32 {
  %x = input f32[?] global
  %c = input u32[?] global
  grid_barrier %c slot 0
}
kernel @stores index 32 {
  %x = input f32[?] global
  %c = input u32[?] global
  grid_barrier %c slot 0
  store %c at 0, 1_u32
}
)");

// The copies and launches of a repeated run in which both tensors begin at 0.
std::pair<int, int> repeated(size_t kernel) {
  NotingGpu gpu;
  RepeatingDevice device(gpu);
  const RunTensor x = device.allocate(Dtype::kFloat, {1}, {}, true), c = device.allocate(Dtype::kUint32, {1}, {}, true);
  const size_t number = device.prepare(kKernels.graphs[kernel], {});
  RunArgument arguments[2];
  arguments[0].tensor = x;
  arguments[1].tensor = c;
  device.launch(number, {}, arguments);
  gpu.copies = gpu.launches = 0;
  device.repeat();
  return {gpu.copies, gpu.launches};
}

TEST(RepeatingDevice, ClearsNoCountersAgain) {
  EXPECT_EQ(repeated(0), std::pair(1, 1));
  EXPECT_EQ(repeated(1), std::pair(2, 1));
}

}  // namespace
}  // namespace fusebox
