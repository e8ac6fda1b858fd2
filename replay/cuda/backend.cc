#include <mutex>
#include <optional>

#include "ir/table/error.h"
#include "replay/cuda/compile.h"
#include "replay/cuda/session.h"

namespace fusebox {
namespace {

class Backend final : public CudaBackend {
 public:
  void add_compiler_folder(const std::string& folder) override { folders_.push_back(folder); }
  CudaVersion compiler_version() override { return {compiler().major, compiler().minor}; }
  std::string compiler_identity() override { return compiler().identity; }
  CudaBinary compile(const CudaCompileRequest& request) override { return compile_with(nvrtc_api(folders_), request); }

  CudaVersion driver_version() override {
    std::string why;
    const DriverApi* driver = driver_api(why);
    int number = 0;  // 1000 major + 10 minor
    if (driver == nullptr || driver->cuDriverGetVersion(&number) != 0) return {};
    return {number / 1000, number % 1000 / 10};
  }
  std::vector<CudaDevice> devices() override {
    std::string why;
    const DriverApi* driver = driver_api(why);
    return driver == nullptr ? std::vector<CudaDevice>() : found(*driver);
  }
  std::unique_ptr<CudaSession> open(int ordinal) override {
    std::string why;
    const DriverApi* driver = driver_api(why);
    if (driver == nullptr) throw Error(ErrorCode::kNoDevice, "no GPU is there: " + why);
    const auto all = found(*driver);
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= all.size())
      throw Error(ErrorCode::kNoDevice,
                  "no GPU has the number " + std::to_string(ordinal) + "; there are " + std::to_string(all.size()));
    return open_session(*driver, all[static_cast<size_t>(ordinal)]);
  }

 private:
  // Asked for once: a driver reads clock rates from the GPU itself, which takes as long as loading a kernel.
  std::vector<CudaDevice> found(const DriverApi& driver) {
    const std::lock_guard lock(finding_);
    if (devices_.empty()) devices_ = list_devices(driver);
    return devices_;
  }
  const NvrtcFile& compiler() {
    const std::lock_guard lock(finding_);
    if (!compiler_) compiler_ = find_nvrtc(folders_);
    return *compiler_;
  }

  std::vector<std::string> folders_;
  std::mutex finding_;
  std::optional<NvrtcFile> compiler_;
  std::vector<CudaDevice> devices_;
};

}  // namespace
}  // namespace fusebox

extern "C" fusebox::CudaBackend* fusebox_cuda_backend() {
  static fusebox::Backend backend;
  return &backend;
}
