#include "replay/device/repeating_device.h"

#include "codegen/cuda.h"

namespace fusebox {

void RepeatingDevice::repeat() {
  for (const auto& work : kept_) work();
}

RunTensor RepeatingDevice::allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides,
                                    bool zeroed) {
  RunTensor made = inner_.allocate(dtype, shape, strides, zeroed);
  if (zeroed)
    kept_.push_back([this, made, zeros = inner_.allocate(dtype, std::move(shape), std::move(strides), true)] {
      if (made.pointer == 0 || used_otherwise_.contains(made.pointer)) inner_.copy(made, zeros);
    });
  return made;
}

size_t RepeatingDevice::prepare(const Graph& kernel, const KernelUse& use) {
  const size_t number = inner_.prepare(kernel, use);
  std::vector<bool>& counts = counts_in_[number];
  counts.clear();
  for (const ValueId parameter : inputs(kernel)) counts.push_back(is_counters(kernel, parameter));
  return number;
}

void RepeatingDevice::copy(const RunTensor& to, const RunTensor& from) {
  inner_.copy(to, from);
  used_otherwise_.insert({to.pointer, from.pointer});
  kept_.push_back([this, to, from] { inner_.copy(to, from); });
}

void RepeatingDevice::launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) {
  inner_.launch(kernel, dims, arguments);
  const std::vector<bool>& counts = counts_in_[kernel];
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].is_scalar &&
        !(i < counts.size() && counts[i] && counted_in_.insert(arguments[i].tensor.pointer).second))
      used_otherwise_.insert(arguments[i].tensor.pointer);
  kept_.push_back([this, kernel, dims, kept = std::vector<RunArgument>(arguments.begin(), arguments.end())] {
    inner_.launch(kernel, dims, kept);
  });
}

}  // namespace fusebox
