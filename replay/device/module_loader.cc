#include "replay/device/module_loader.h"

#include <dlfcn.h>
#include <filesystem>

#include "ir/table/error.h"

namespace fusebox {

std::vector<std::string> module_folders() {
  // The file that contains this code: a program, or the Python extension.
  Dl_info info{};
  std::filesystem::path own;
  if (::dladdr(reinterpret_cast<const void*>(&module_folders), &info) != 0 && info.dli_fname != nullptr)
    own = info.dli_fname;
  std::error_code error;
  // A program's name may be as the user typed it: relative, or found along PATH.
  std::filesystem::path resolved = std::filesystem::canonical(own, error);
  if (error || own.filename() == own) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error && (own.empty() || own.filename() == program.filename())) resolved = program;
  }
  const std::filesystem::path folder = resolved.parent_path();
  std::vector<std::string> folders;
  for (const char* below : {".", "..", "../lib", "../../lib"})
    folders.push_back((folder / below).lexically_normal().string());
  return folders;
}

void* load_module_entry(const std::string& name, const char* entry, const std::string& advice) {
  const std::string file = "libfusebox_" + name + ".so";
  std::string looked, failure;
  for (const std::string& folder : module_folders()) {
    const std::string path = (std::filesystem::path(folder) / file).string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      looked += (looked.empty() ? "" : ", ") + folder;
      continue;
    }
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      const char* why = ::dlerror();
      failure = why != nullptr ? why : "an unknown reason";
      break;
    }
    if (void* found = ::dlsym(module, entry)) return found;
    failure = path + " has no " + entry;
    break;
  }
  if (failure.empty()) failure = "it is in none of " + looked;
  throw Error(ErrorCode::kModuleMissing, file + " cannot be loaded (" + failure + "); " + advice, file);
}

const AtenApi& load_aten() {
  static const AtenApi& api = *reinterpret_cast<AtenEntry>(load_module_entry(
      "aten", kAtenEntryName, "install PyTorch 2.11 or later and build Fusebox where CMake finds it"))();
  return api;
}

const AtenApi* find_aten() {
  static const AtenApi* api = []() -> const AtenApi* {
    try {
      return &load_aten();
    } catch (const Error& e) {
      if (e.code != ErrorCode::kModuleMissing) throw;
      return nullptr;
    }
  }();
  return api;
}

}  // namespace fusebox
