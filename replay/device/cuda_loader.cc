#include "replay/device/cuda_loader.h"

#include "codegen/runtime_sources.h"
#include "ir/table/error.h"
#include "replay/device/module_loader.h"

namespace fusebox {

CudaBackend& cuda_backend() {
  static CudaBackend& backend = *reinterpret_cast<decltype(&fusebox_cuda_backend)>(
      load_module_entry("cuda", "fusebox_cuda_backend", "build Fusebox with the CMake option FUSEBOX_CUDA"))();
  return backend;
}

CudaBackend* find_cuda_compiler() {
  static CudaBackend* const found = []() -> CudaBackend* {
    try {
      cuda_backend().compiler_version();
      return &cuda_backend();
    } catch (const Error& e) {
      if (e.code != ErrorCode::kModuleMissing) throw;
      return nullptr;
    }
  }();
  return found;
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
