// A call that is ready to run on a GPU: the work of a resolved call, with its kernels loaded. In Python the extension
// `_fusebox` makes it; the extension `_fusebox_torch`, which needs PyTorch's libraries, finds it by the tensors of a call
// and starts it. They share it in a capsule.
//
// Invariants: nothing but `is_stale` and the owner of the counters changes after construction, so several threads may
// start one call. `start` allocates nothing but what ATen segments make and, the first time, the counters. Otherwise it
// waits for nothing and takes no lock. A graph that captures it keeps the device's kernels, so it may outlive the call.
//
//   call.start({.inputs = …, .outputs = …, .arena = …, .scalars = …, .stream = stream});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/device/aten_api.h"
#include "replay/run/resolved_call.h"

namespace fusebox {

constexpr const char* kFastCallCapsule = "fusebox.fast_call";

struct FastTensor {
  Dtype dtype = Dtype::kFloat;
  std::vector<int64_t> shape, strides;
  bool is_by_aten = false;  // the call makes it, and gives it back in FastAddresses::made
};

struct FastAddresses {
  const uint64_t* inputs;   // of the tensors among the arguments, in order
  const uint64_t* outputs;  // of FastCall::outputs
  uint64_t arena;
  const uint64_t* scalars;  // by argument: the bits of open scalars
  void* stream;
  // By output: the at::Tensor of those that ATen makes.
  std::vector<std::shared_ptr<void>>* made = nullptr;
};

class FastCall {
 public:
  virtual ~FastCall() = default;
  // Whether the call is right for inputs at these addresses: none that is overwritten overlaps another one.
  virtual bool serves(const uint64_t* inputs) const = 0;
  // Throws Error if a launch fails.
  virtual void start(const FastAddresses& at) const = 0;
  // The steps of the resolved call that do something, by their place in it, for measuring each alone. The counters of
  // launches are the call's own, and are not cleared by a step.
  virtual std::vector<size_t> steps() const = 0;
  // Starts one of them, when those before it have been started once. Not for calls with segments by ATen.
  virtual void start_step(size_t step, const FastAddresses& at) const = 0;

  std::string name;                  // of the program, for profilers
  std::vector<FastTensor> outputs;   // those that the caller allocates, in order
  std::vector<bool> overwritten;     // by tensor argument
  std::vector<int64_t> input_bytes;  // by tensor argument: from its first element to its last
  // By argument: the dtype of a scalar whose value may change from call to call.
  std::vector<std::optional<Dtype>> open_scalars;
  int64_t arena_bytes = 0;
  // Becomes true when the program changes: then the call must not be started any more.
  std::shared_ptr<const bool> is_stale;
};

// False if only the host program can run the call: it is refused, or an output is a scalar, is an input, or is another
// output too.
bool is_fast(const ResolvedCall& call);

// A call on `device`, which must be a GPU's and keeps the kernels. The launches' limits are checked here: throws
// kLaunchLimit. `arguments` are those that the call was resolved for, and `aten_forms` the ATen segments (aten_segment.h).
// Null if the call is not fast.
std::unique_ptr<FastCall> make_fast_call(const ResolvedCall& call, std::span<const NamedKernel> kernels,
                                         std::span<const Argument> arguments, std::shared_ptr<Device> device,
                                         std::map<std::string, AtenForm> aten_forms = {});

}  // namespace fusebox
