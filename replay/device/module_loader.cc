#include "replay/device/module_loader.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>

#include "ir/table/error.h"
#include "replay/device/module_identity.h"

namespace fusebox {

std::vector<std::string> module_folders() {
  // The file that contains this code: a program, the library, or the Python extension.
  static const char here = 0;
  Dl_info info{};
  std::filesystem::path own;
  if (::dladdr(&here, &info) != 0 && info.dli_fname != nullptr) own = info.dli_fname;
  std::error_code error;
  // A program's name may be as the user typed it: relative, or found along PATH.
  std::filesystem::path resolved = std::filesystem::canonical(own, error);
  if (error || own.filename() == own) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error && (own.empty() || own.filename() == program.filename())) resolved = program;
  }
  const std::filesystem::path folder = resolved.parent_path();
  std::vector<std::string> folders;
  const auto add = [&](const std::filesystem::path& path) {
    std::string text = path.lexically_normal().string();
    if (text.size() > 1 && text.back() == '/') text.pop_back();
    if (std::find(folders.begin(), folders.end(), text) == folders.end()) folders.push_back(std::move(text));
  };
  for (const char* below : {".", "..", FUSEBOX_PROGRAM_TO_MODULES, "../lib", "../../lib"}) add(folder / below);
  if (const char* given = std::getenv(kModulePathVariable)) {
    for (std::string_view rest = given; !rest.empty();) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon != 0) add(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  return folders;
}

namespace {

// Why a module that was loaded cannot be used; empty if it can.
std::string refusal(void* module, const std::string& path, const char* entry) {
  const auto identity =
      reinterpret_cast<decltype(&fusebox_module_identity)>(::dlsym(module, "fusebox_module_identity"));
  const std::string theirs = identity == nullptr ? "an unknown version" : identity();
  if (theirs != fusebox_module_identity())
    return path + " belongs to another build of Fusebox, " + theirs + ", and this is " + fusebox_module_identity();
  return ::dlsym(module, entry) == nullptr ? path + " has no " + entry : "";
}

}  // namespace

void* load_module_entry(const std::string& name, const char* entry, const std::string& advice) {
  const std::string file = "libfusebox_" + name + ".so";
  std::string looked;
  const auto failure = [&](const std::string& why, const std::string& what_to_do) {
    return Error(ErrorCode::kModuleMissing, file + " cannot be loaded (" + why + "); " + what_to_do, file);
  };
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
      throw failure(
          why != nullptr ? why : "an unknown reason",
          "name the folders of the libraries that it needs, such as torch/lib of PyTorch, in LD_LIBRARY_PATH");
    }
    if (const std::string why = refusal(module, path, entry); !why.empty())
      throw failure(why, "install the library and its modules from one build");
    return ::dlsym(module, entry);
  }
  throw failure("it is in none of " + looked, advice + ", or name its folder in " + kModulePathVariable);
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
