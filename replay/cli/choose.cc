#include "replay/cli/choose.h"

#include "ir/table/error.h"
#include "replay/cli/report.h"
#include "replay/device/cuda_loader.h"

namespace fusebox::cli {

Executor choose_executor(const std::string& on) {
  if (!on.empty()) return *parse_executor(on);
  if (default_executor() == Executor::kHost) return Executor::kHost;
  try {
    cuda_backend().compiler_version();
    if (!cuda_backend().devices().empty()) return Executor::kCuda;
    note("no GPU is there; running on the host");
  } catch (const Error& e) {
    if (e.code != ErrorCode::kNoDevice && e.code != ErrorCode::kModuleMissing) throw;
    note(std::string("running on the host: ") + e.what());
  }
  return Executor::kHost;
}

}  // namespace fusebox::cli
