#include "replay/cuda/libraries.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>

#include "ir/table/error.h"

namespace fusebox {
namespace {

namespace fs = std::filesystem;

// Fills in a table of functions. Returns the first symbol that the library lacks.
const char* resolve(void* library, DriverApi& api) {
#define FUSEBOX_RESOLVE(name, symbol, ...)                                  \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #symbol)); \
  if (api.name == nullptr) return #symbol;
  FUSEBOX_DRIVER_FUNCTIONS(FUSEBOX_RESOLVE)
  return nullptr;
}
const char* resolve(void* library, NvrtcApi& api) {
  FUSEBOX_NVRTC_FUNCTIONS(FUSEBOX_RESOLVE)
#undef FUSEBOX_RESOLVE
  return nullptr;
}

struct Driver {
  DriverApi api;
  bool is_there = false;
  std::string why;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      why = dlerror();
      return;
    }
    if (const char* missing = resolve(library, api)) {
      why = std::string("libcuda.so.1 lacks ") + missing;
      return;
    }
    if (const int code = api.cuInit(0); code != 0) {
      const char* text = nullptr;
      api.cuGetErrorString(code, &text);
      why = text == nullptr ? "cuInit failed" : text;
      return;
    }
    is_there = true;
  }
};

void split(std::string_view list, std::vector<fs::path>& folders) {
  while (!list.empty()) {
    const size_t colon = list.find(':');
    if (colon != 0) folders.emplace_back(list.substr(0, colon));
    list = colon == std::string_view::npos ? std::string_view() : list.substr(colon + 1);
  }
}

// Adds lib*/python*/site-packages/nvidia/*/lib of an environment, where PyPI's packages put the libraries.
void add_packages(const fs::path& root, std::vector<fs::path>& folders) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& version : fs::directory_iterator(root / "lib", ignored)) {
    if (!version.path().filename().string().starts_with("python")) continue;
    for (const char* site : {"site-packages", "dist-packages"})
      for (const auto& package : fs::directory_iterator(version.path() / site / "nvidia", ignored))
        found.push_back(package.path() / "lib");
  }
  std::sort(found.rbegin(), found.rend());  // the newest version first
  folders.insert(folders.end(), found.begin(), found.end());
}

// The folder of the file that contains an address, without links; empty if it is unknown.
fs::path folder_of(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

// Adds nvidia/*/lib of a folder of Python packages.
void add_nvidia(const fs::path& packages, std::vector<fs::path>& folders) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& package : fs::directory_iterator(packages / "nvidia", ignored))
    found.push_back(package.path() / "lib");
  std::sort(found.rbegin(), found.rend());  // the newest version first
  folders.insert(folders.end(), found.begin(), found.end());
}

// The folder of PyTorch's libraries, if they are in this process.
fs::path torch_folder() {
  void* library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  const link_map* map = nullptr;
  const bool is_known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
  std::error_code ignored;
  const fs::path folder = is_known ? fs::canonical(map->l_name, ignored).parent_path() : fs::path();
  dlclose(library);
  return folder;
}

std::vector<fs::path> compiler_folders(const std::vector<std::string>& first) {
  std::vector<fs::path> folders(first.begin(), first.end());
  // Beside this module; among the Python packages that it, or PyTorch, is one of.
  if (const fs::path own = folder_of(reinterpret_cast<const void*>(&add_nvidia)); !own.empty()) {
    folders.push_back(own);
    add_nvidia(own.parent_path(), folders);
  }
  if (const fs::path torch = torch_folder(); !torch.empty()) add_nvidia(torch.parent_path().parent_path(), folders);
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_packages(environment, folders);
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) split(path, folders);
  add_packages("/usr/local", folders);
  add_packages("/usr", folders);
  return folders;
}

// The files of a library in a folder, the newest version first.
std::vector<fs::path> files_named(const fs::path& folder, std::string_view prefix) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  std::sort(files.rbegin(), files.rend());
  return files;
}

struct Nvrtc {
  NvrtcApi api;
  std::string why = "libnvrtc was not found";

  explicit Nvrtc(const std::vector<std::string>& first) {
    for (const fs::path& folder : compiler_folders(first)) {
      // Version 12, from 12.8 on, compiles for sm_100a too.
      for (const char* prefix : {"libnvrtc.so.13", "libnvrtc.so.12"})
        for (const fs::path& file : files_named(folder, prefix))
          if (open(file)) return;
    }
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
      if (open(name)) return;
  }

  bool open(const fs::path& file) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (file.has_parent_path()) why = dlerror();
      return false;
    }
    if (const char* missing = resolve(library, api)) {
      why = file.string() + " lacks " + missing;
      return false;
    }
    // The compiler looks for its builtins by name when it first compiles, and then finds the library loaded here.
    int major = 0, minor = 0;
    api.nvrtcVersion(&major, &minor);
    const std::string builtins = "libnvrtc-builtins.so." + std::to_string(major);
    for (const fs::path& beside : files_named(folder_of(reinterpret_cast<void*>(api.nvrtcVersion)), builtins))
      if (dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) break;
    why.clear();
    return true;
  }
};

}  // namespace

const DriverApi* driver_api(std::string& why) {
  static const Driver driver;
  why = driver.why;
  return driver.is_there ? &driver.api : nullptr;
}

const NvrtcApi& nvrtc_api(const std::vector<std::string>& folders) {
  static const Nvrtc nvrtc(folders);
  if (!nvrtc.why.empty())
    throw Error(ErrorCode::kModuleMissing,
                "no CUDA compiler: " + nvrtc.why + "; install a CUDA 13 toolkit or PyPI's nvidia-cuda-nvrtc");
  return nvrtc.api;
}

NvrtcFile find_nvrtc(const std::vector<std::string>& folders) {
  for (const fs::path& folder : compiler_folders(folders))
    for (const char* major : {"13", "12"})
      for (const fs::path& file : files_named(folder, std::string("libnvrtc.so.") + major)) {
        // The name of the builtins beside it has the minor version: libnvrtc-builtins.so.13.0
        std::error_code failed;
        const fs::path real = fs::canonical(file, failed);
        const uintmax_t bytes = failed ? 0 : fs::file_size(real, failed);
        if (failed) continue;
        const std::string prefix = std::string("libnvrtc-builtins.so.") + major + ".";
        for (const fs::path& beside : files_named(real.parent_path(), prefix)) {
          const int minor = std::atoi(beside.filename().string().c_str() + prefix.size());
          return {std::atoi(major), minor,
                  "nvrtc " + std::string(major) + "." + std::to_string(minor) + " " + std::to_string(bytes)};
        }
      }
  NvrtcFile loaded;
  nvrtc_api(folders).nvrtcVersion(&loaded.major, &loaded.minor);
  loaded.identity = "nvrtc " + std::to_string(loaded.major) + "." + std::to_string(loaded.minor);
  return loaded;
}

}  // namespace fusebox
