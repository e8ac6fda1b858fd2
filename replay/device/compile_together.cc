#include "replay/device/compile_together.h"

#include <algorithm>
#include <atomic>

#include "codegen/cuda.h"
#include "replay/data/parts.h"
#include "replay/device/cuda_loader.h"

namespace fusebox {

std::vector<CompiledText> compile_together(std::span<const std::string> texts, const std::string& architecture,
                                           const CompileTogetherOptions& options) {
  std::vector<CompiledText> result(texts.size());
  if (texts.empty()) return result;
  CudaBackend& backend = cuda_backend();  // loaded before the threads begin
  std::atomic<size_t> next = 0;
  const auto work = [&](int) {
    for (size_t i = next++; i < texts.size() && (!options.go_on || options.go_on()); i = next++) {
      try {
        result[i].binary = backend.compile({.text = texts[i],
                                            .headers = cuda_headers(),
                                            .architecture = architecture,
                                            .options = cuda_compile_options()});
      } catch (const Error& e) {
        result[i].error = e;
      }
    }
  };
  run_parts(std::clamp(options.threads, 1, static_cast<int>(texts.size())), work);
  return result;
}

}  // namespace fusebox
