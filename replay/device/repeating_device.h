// A device that passes a program's work on to another one, and keeps what must be done to repeat the run on the same
// memory: its clears, copies and launches, in their order. Allocations, checks and downloads are not repeated. On a GPU,
// buffers in which kernels only count their blocks are not cleared again either: each launch leaves them ready for the
// next one, and repeats run one after another.
//
// Invariant: the tensors of the kept work stay alive as long as this device.
//
//   RepeatingDevice device(*cuda);
//   run_host_program(host, kernels, device, arguments, options, false);
//   device.repeat();   // does not wait
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "replay/device/device.h"

namespace fusebox {

class RepeatingDevice : public Device {
 public:
  // `inner` must outlive this device.
  explicit RepeatingDevice(Device& inner) : inner_(inner) {}

  // Does the kept work again. On a GPU it runs in order on the default stream, and this returns before it is done.
  void repeat();
  // The kept work: clears, copies and launches.
  size_t size() const { return kept_.size(); }

  std::string_view name() const override { return inner_.name(); }
  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) override;
  RunTensor upload(const TensorData& t) override { return inner_.upload(t); }
  TensorData download(const RunTensor& t, const std::string& place) override { return inner_.download(t, place); }
  void copy(const RunTensor& to, const RunTensor& from) override;
  int64_t alignment(const RunTensor& t) override { return inner_.alignment(t); }
  size_t prepare(const Graph& kernel, const KernelUse& use) override;
  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override;
  void synchronize() override { inner_.synchronize(); }
  std::vector<Digest> binaries() const override { return inner_.binaries(); }

 private:
  Device& inner_;
  std::vector<std::function<void()>> kept_;
  std::map<size_t, std::vector<bool>> counts_in_;  // by kernel: for each parameter, whether it only counts blocks there
  std::set<CudaPointer> counted_in_;               // the memory in which one launch counts
  std::set<CudaPointer> used_otherwise_;           // the memory of other arguments
};

}  // namespace fusebox
