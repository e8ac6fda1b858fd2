// NVRTC: compiles source to a binary for one architecture. Needs no GPU.
#pragma once

#include "replay/cuda/libraries.h"
#include "replay/device/cuda_api.h"

namespace fusebox {

// Throws kCompileFailure with the first error of the log, and kBadInput if `architecture` does not name one.
CudaBinary compile_with(const NvrtcApi& nvrtc, const CudaCompileRequest& request);

}  // namespace fusebox
