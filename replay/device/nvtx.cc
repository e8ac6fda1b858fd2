#include "replay/device/nvtx.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox {
namespace {

// Null if there is no request, or no library.
struct Nvtx {
  int (*push)(const char*) = nullptr;
  int (*pop)() = nullptr;

  Nvtx() {
    const char* const wanted = std::getenv("FUSEBOX_NVTX");
    const std::string_view word = wanted == nullptr ? "" : wanted;
    if (word.empty() || word == "0") return;
    const std::vector<std::string> names =
        word == "1" ? std::vector<std::string>{"libnvtx3interop.so.1", "libnvtx3interop.so", "libnvToolsExt.so.1"}
                    : std::vector<std::string>{std::string(word)};
    std::string why;
    for (const std::string& name : names) {
      if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        push = reinterpret_cast<decltype(push)>(::dlsym(library, "nvtxRangePushA"));
        pop = reinterpret_cast<decltype(pop)>(::dlsym(library, "nvtxRangePop"));
        if (push != nullptr && pop != nullptr) return;
        push = nullptr, pop = nullptr;
        why = name + " has no nvtxRangePushA";
      } else if (why.empty()) {
        const char* const words = ::dlerror();
        why = words == nullptr ? name + " cannot be loaded" : words;
      }
    }
    std::fprintf(stderr,
                 "fusebox: FUSEBOX_NVTX is set, and there is no NVTX library (%s); name its file instead of 1\n",
                 why.c_str());
  }
};

const Nvtx& nvtx() {
  static const Nvtx loaded;
  return loaded;
}

}  // namespace

NvtxRange::NvtxRange(const char* name) : is_open_(nvtx().push != nullptr && name != nullptr && *name != 0) {
  if (is_open_) nvtx().push(name);
}

NvtxRange::~NvtxRange() {
  if (is_open_) nvtx().pop();
}

}  // namespace fusebox
