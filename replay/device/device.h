// A device holds the tensors of a host program and runs its kernels: in the host executor's memory, or in a GPU's. With
// one interface for both there is one interpreter of host programs.
//
// Invariants: a RunTensor keeps its memory alive. `layout` (shape, strides in elements, dtype) is the same on every
// device; its storage pointer is set only on the host.
//
//   auto device = make_host_device({.threads = 1});
//   size_t k = device->prepare(kernel, {});
//   device->launch(k, {.grid = {2, 1, 1}, .block = {128, 1, 1}}, arguments);
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/tensor_layout.h"
#include "ir/table/defect.h"
#include "replay/data/tensor_data.h"
#include "replay/device/aten_api.h"
#include "replay/device/cuda_api.h"
#include "replay/device/kernel_images.h"
#include "replay/host/host_executor.h"

namespace fusebox {

struct RunTensor {
  TensorData layout;
  std::shared_ptr<DefinedElements> defined;  // host: the positions of the storage that hold a value
  CudaPointer pointer = 0;                   // device: element (0, 0, …)
  std::shared_ptr<void> owner;               // device memory
  bool is_by_aten = false;                   // device memory of PyTorch: the owner is an at::Tensor
  int64_t before = 0;  // of a view: the bytes before its first element, in the tensor that it is of
};

// Whether a view, `first` elements behind the first one of the base, reaches no further than the base does.
bool lies_within(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t first,
                 const TensorLayout& base);
// The view as a tensor. One without elements begins where the base does. Throws kInvalidGraph with `place` for one that does
// not lie within the base.
RunTensor view_of(const RunTensor& base, std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t first,
                  const std::string& place);

// One argument of a launch: a scalar's bits, or a tensor.
struct RunArgument {
  bool is_scalar = false;
  Dtype dtype = Dtype::kIndex;
  ConstantBits bits;
  RunTensor tensor;
  ValueId value = {};  // of the host program
};

struct PrepareOptions {
  int threads = 1;                   // threads that compile
  std::function<bool()> go_on = {};  // asked between two compilations, on any of the threads; false: stop here
};

// How a prepared kernel is launched.
struct KernelUse {
  bool reads_apart = true;  // no launch stores to memory of a parameter that the kernel only reads (overlap.h)
};

// The largest power of two, up to 256, that divides an address; 256 for no memory.
inline int64_t alignment_of(uint64_t address) {
  return address == 0 ? 256 : static_cast<int64_t>(std::min<uint64_t>(address & (~address + 1), 256));
}

// The same of a view, whose address is `before` bytes behind that of the tensor in whose memory it lies. It follows from what
// divides each of them, so that a call which serves one address serves all that are aligned alike.
inline int64_t alignment_of_view(uint64_t address, int64_t before) {
  const auto gap = static_cast<uint64_t>(before);
  return std::min(alignment_of(address - gap), alignment_of(gap));
}

class Device {
 public:
  virtual ~Device() = default;
  // "host" or "cuda".
  virtual std::string_view name() const = 0;
  virtual RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) = 0;
  // Copies the tensor's elements to this device; the caller's memory is not shared.
  virtual RunTensor upload(const TensorData& t) = 0;
  // The host throws E0417 with `place` if an element was never written.
  virtual TensorData download(const RunTensor& t, const std::string& place) = 0;
  // Both have the same shape and dtype; strides may differ.
  virtual void copy(const RunTensor& to, const RunTensor& from) = 0;
  // The largest power of two in bytes, up to 256, that divides the address of element (0, 0, …).
  virtual int64_t alignment(const RunTensor& t) = 0;
  // Makes a kernel ready for such launches and returns its number for `launch`. On a GPU the same kernel again gives
  // the same number.
  virtual size_t prepare(const Graph& kernel, const KernelUse& use) = 0;
  // Makes many kernels ready at once, for launches whose reads are apart, so that `prepare` finds them. Several are
  // compiled together. A kernel that does
  // not compile is left to `prepare`, which throws its error. Returns the number of new kernels; 0 on a device that
  // gains nothing.
  virtual size_t prepare_all(std::span<const Graph* const> kernels, const PrepareOptions& options) {
    (void)kernels, (void)options;
    return 0;
  }
  // Drops all tensors. From now on new memory holds a pattern, not the contents of earlier programs.
  virtual void begin_program() {}
  // Says where memory beside the tensors was written since `begin_program`; empty: nowhere, or not known.
  virtual std::string strayed() { return {}; }
  virtual void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) = 0;
  // The same launch without its arguments, ready to start on a GPU's session; nothing on a device without one.
  virtual std::optional<CudaReadyLaunch> ready(size_t kernel, const LaunchDims& dims) {
    (void)kernel, (void)dims;
    return std::nullopt;
  }
  virtual CudaSession* session() { return nullptr; }
  // Before a `ready` launch is started on a stream that is captured: the graph keeps the device's kernels as long as it lives.
  virtual void keep_for_graph(CudaStream stream) { (void)stream; }
  // Waits for what was launched and copied so far; on a GPU for its stream alone, as others may work, or be captured.
  virtual void synchronize() = 0;
  // Binaries that `prepare` may load instead of compiling, where they are what it would compile. A device that interprets
  // has no use for them.
  virtual void offer(std::span<const KernelImage> images) { (void)images; }
  // The binaries that `prepare` loaded or compiled, on a device that keeps them.
  virtual std::vector<KernelImage> images() const { return {}; }
  // The stream that later work goes to, on a GPU; null: the default one.
  virtual void set_stream(CudaStream stream) { (void)stream; }
  // Where ATen finds this device's tensors.
  virtual AtenPlace aten_place() const { return {}; }
  // A digest of each binary, in the order in which kernels were prepared; none on a device that interprets.
  virtual std::vector<Digest> binaries() const { return {}; }
};

struct HostDeviceOptions {
  int threads = 1;
  int64_t step_limit = int64_t{1} << 40;
  int64_t memory_limit = int64_t{1} << 34;    // bytes of a tensor that it makes, and of the checks of a launch
  std::vector<BankCounter>* banks = nullptr;  // one for each kernel that is prepared, in that order
  Defects defects = {};                       // seeded, in the bytecode
  HostChecks checks = {};
  LaunchObserver* observer = nullptr;  // of every launch
};
std::unique_ptr<Device> make_host_device(const HostDeviceOptions& options = {});

struct CudaDeviceOptions {
  int ordinal = 0;
  // By a kernel's name: the text to compile instead of the kernel's own.
  std::map<std::string, std::string> texts = {};
  // The size of a block of memory that tensors lie in, each with margins, as long as there is room; 0: no such block.
  int64_t arena_bytes = 0;
  // Binaries of earlier runs, and a place for new ones. Null: every kernel is compiled.
  std::shared_ptr<KernelImages> images = nullptr;
  bool keeps_images = false;  // `images` tells what was loaded, also without a place to keep it
  bool may_compile = true;    // false: `prepare` throws kNotCached for a kernel without a binary
};
// Throws kNoDevice or kModuleMissing.
std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& options = {});

}  // namespace fusebox
