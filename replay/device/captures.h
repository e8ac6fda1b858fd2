// A stream that is captured into a CUDA graph: what it is given waits for nobody, and to wait for it ends the capture.
#pragma once

#include <string>

#include "replay/device/cuda_api.h"

namespace fusebox {

// Throws kUnsupportedOp if the stream is captured, for a call at `place` that is interpreted and waits for its work. The
// stream and its capture stay as they are.
void refuse_captured(CudaSession& session, CudaStream stream, const std::string& place);

}  // namespace fusebox
