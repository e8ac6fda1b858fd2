// Between a program that `compile` made and the value that records keep.
//
//   compiled_of(compiled_fusion(c, {}))   // c, member by member
#pragma once

#include <span>

#include "passes/pipeline/pipeline.h"
#include "serde/cache_record.h"

namespace fusebox {

// Takes those of the images that belong to the program's kernels.
CompiledFusion compiled_fusion(const Compiled& compiled, std::span<const KernelImage> images);
// The value has passed `decode_record`.
Compiled compiled_of(const CompiledFusion& fusion);

}  // namespace fusebox
