#include "replay/cuda_loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "codegen/runtime_sources.h"
#include "ir/error.h"

namespace fusebox {
namespace {

constexpr const char* kModule = "libfusebox_cuda.so";

std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv("FUSEBOX_MODULES")) folders.emplace_back(named);
  std::error_code ignored;
  Dl_info info;
  // This code may stand in an executable or in a shared library.
  if (dladdr(reinterpret_cast<void*>(&cuda_headers), &info) != 0 && info.dli_fname != nullptr)
    folders.push_back(std::filesystem::absolute(info.dli_fname, ignored).parent_path());
  folders.push_back(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path());
  std::vector<std::filesystem::path> files;
  for (const auto& folder : folders) {
    files.push_back(folder / kModule);
    files.push_back(folder / ".." / "lib" / kModule);
  }
  return files;
}

CudaBackend& load() {
  std::string why = "it is not beside the program";
  for (const auto& file : candidates()) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      why = dlerror();
      continue;
    }
    if (const auto entry = reinterpret_cast<decltype(&fusebox_cuda_backend)>(dlsym(module, "fusebox_cuda_backend"))) return *entry();
    why = "it lacks its entry point";
  }
  throw Error(ErrorCode::kModuleMissing, std::string(kModule) + " cannot be loaded: " + why + "; build it, or name its folder in FUSEBOX_MODULES");
}

}  // namespace

CudaBackend& cuda_backend() {
  static CudaBackend& backend = load();
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
