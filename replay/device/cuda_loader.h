// Loads the module libfusebox_cuda once, from the folders of module_loader.h.
//
//   for (const CudaDevice& device : cuda_backend().devices()) print(device.name);
#pragma once

#include "replay/device/cuda_api.h"

namespace fusebox {

// Throws kModuleMissing if the module is not there.
CudaBackend& cuda_backend();
// The same if it can compile, which needs no GPU; nullptr where the module or NVRTC is not installed.
CudaBackend* find_cuda_compiler();
// The runtime headers of codegen, as a compile request takes them.
std::span<const CudaHeaderText> cuda_headers();

}  // namespace fusebox
