// One open device of the driver.
#pragma once

#include <memory>

#include "replay/cuda/libraries.h"
#include "replay/device/cuda_api.h"

namespace fusebox {

std::vector<CudaDevice> list_devices(const DriverApi& driver);
std::unique_ptr<CudaSession> open_session(const DriverApi& driver, const CudaDevice& device);

}  // namespace fusebox
