#include "replay/device/cuda_loader.h"

#include "codegen/runtime_sources.h"
#include "replay/device/module_loader.h"

namespace fusebox {

CudaBackend& cuda_backend() {
  static CudaBackend& backend = *reinterpret_cast<decltype(&fusebox_cuda_backend)>(
      load_module_entry("cuda", "fusebox_cuda_backend", "build Fusebox with the CMake option FUSEBOX_CUDA"))();
  return backend;
}

std::span<const CudaHeaderText> cuda_headers() {
  static const std::vector<CudaHeaderText> headers = [] {
    std::vector<CudaHeaderText> result;
    for (const RuntimeHeader& h : runtime_headers()) result.push_back({h.name, h.text});
    return result;
  }();
  return headers;
}

}  // namespace fusebox
