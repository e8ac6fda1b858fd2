#include "replay/device/captures.h"

#include "ir/table/error.h"

namespace fusebox {

void refuse_captured(CudaSession& session, CudaStream stream, const std::string& place) {
  if (stream == nullptr) return;  // the default stream is never captured
  const EnteredSession entered(session);
  if (!session.is_captured(stream)) return;
  throw Error(
      ErrorCode::kUnsupportedOp,
      "this call is interpreted and waits for its work, so no CUDA graph can capture it; call it once before the "
      "capture, which often lets the next call start at once, or call it outside. Calls with `device=`, with "
      "FUSEBOX_DEBUG=1, and of fusions with an output that is a scalar, an input or another output are always "
      "interpreted",
      place);
}

}  // namespace fusebox
