// Compiles the kernels of a program at the same time, before its first run. The run itself does and records the same: the
// device loads a kernel when it prepares it.
//
//   prepare_together(*device, compiled.kernels);
#pragma once

#include <span>

#include "replay/device/device.h"

namespace fusebox {

// Graphs without ops, which stand for other segments, are left out. A kernel that does not compile is left to `prepare`.
void prepare_together(Device& device, std::span<const Graph> kernels);

}  // namespace fusebox
