#include "replay/device/repeating_device.h"

namespace fusebox {

void RepeatingDevice::repeat() {
  for (const auto& work : kept_) work();
}

RunTensor RepeatingDevice::allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides,
                                    bool zeroed) {
  RunTensor made = inner_.allocate(dtype, shape, strides, zeroed);
  if (zeroed)
    kept_.push_back([this, made, zeros = inner_.allocate(dtype, std::move(shape), std::move(strides), true)] {
      inner_.copy(made, zeros);
    });
  return made;
}

void RepeatingDevice::copy(const RunTensor& to, const RunTensor& from) {
  inner_.copy(to, from);
  kept_.push_back([this, to, from] { inner_.copy(to, from); });
}

void RepeatingDevice::launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) {
  inner_.launch(kernel, dims, arguments);
  kept_.push_back([this, kernel, dims, kept = std::vector<RunArgument>(arguments.begin(), arguments.end())] {
    inner_.launch(kernel, dims, kept);
  });
}

}  // namespace fusebox
