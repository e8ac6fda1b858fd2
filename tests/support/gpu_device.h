// The CUDA device of this machine, for tests that skip without one.
//
//   const auto gpu = testing::gpu_or_null();
//   if (!gpu) GTEST_SKIP() << "no GPU";
#pragma once

#include <memory>

#include "ir/table/error.h"
#include "replay/device/device.h"
#include "replay/run/run.h"

namespace fusebox::testing {

// nullptr if there is no GPU or no CUDA module. Throws other failures.
inline std::unique_ptr<Device> gpu_or_null() {
  if (default_executor() != Executor::kCuda) return nullptr;
  try {
    return make_cuda_device();
  } catch (const Error& e) {
    if (e.code == ErrorCode::kNoDevice || e.code == ErrorCode::kModuleMissing) return nullptr;
    throw;
  }
}

}  // namespace fusebox::testing
