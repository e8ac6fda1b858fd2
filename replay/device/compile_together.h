// Compiles several texts at the same time. NVRTC may be called from several threads at once.
//
//   auto made = compile_together(texts, "sm_90a", {.threads = 4});
//   if (made[0].binary) … else throw *made[0].error;
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/table/error.h"
#include "replay/device/cuda_api.h"

namespace fusebox {

struct CompileTogetherOptions {
  int threads = 1;
  std::function<bool()> go_on = {};  // asked between two compilations, on any of the threads; false: stop here
};

// One of two: neither, if `go_on` ended it before.
struct CompiledText {
  std::optional<CudaBinary> binary;
  std::optional<Error> error;
};

// By text. The binary of a text does not depend on the others, nor on the number of threads.
std::vector<CompiledText> compile_together(std::span<const std::string> texts, const std::string& architecture,
                                           const CompileTogetherOptions& options = {});

}  // namespace fusebox
