// A GPU for tests of fast calls: it allocates nothing, runs nothing, and starts launches in a session of the test's own.
#pragma once

#include "replay/device/device.h"

namespace fusebox::testing {

template <class Session>
class IdleGpu : public Device {
 public:
  std::string_view name() const override { return "idle"; }
  RunTensor allocate(Dtype, std::vector<int64_t>, std::vector<int64_t>, bool) override { return {}; }
  RunTensor upload(const TensorData&) override { return {}; }
  TensorData download(const RunTensor&, const std::string&) override { return {}; }
  void copy(const RunTensor&, const RunTensor&) override {}
  int64_t alignment(const RunTensor&) override { return 1; }
  size_t prepare(const Graph&, const KernelUse&) override { return 0; }
  void launch(size_t, const LaunchDims&, std::span<const RunArgument>) override {}
  std::optional<CudaReadyLaunch> ready(size_t, const LaunchDims& dims) override {
    CudaReadyLaunch made;
    made.grid[0] = static_cast<unsigned>(dims.grid[0]);
    return made;
  }
  CudaSession* session() override { return &starts; }
  void synchronize() override {}

  Session starts;
};

}  // namespace fusebox::testing
