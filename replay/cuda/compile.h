// NVRTC: source to a binary for one architecture. Needs no GPU.
#pragma once

#include "replay/cuda/libraries.h"
#include "replay/device/cuda_api.h"

namespace fusebox {

// Throws kCompileFailure with the first error of the log, and kBadInput for an architecture that is none.
CudaBinary compile_with(const NvrtcApi& nvrtc, const CudaCompileRequest& request);

}  // namespace fusebox
