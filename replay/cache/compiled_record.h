// Between a program that `compile` made and the value that records keep.
//
//   compiled_of(compiled_fusion(c, {}, signature))   // c, member by member
#pragma once

#include <optional>
#include <span>

#include "passes/pipeline/pipeline.h"
#include "serde/cache_record.h"

namespace fusebox {

// The host program of a compiled fusion as a launch record; none if it does not fit into one.
std::optional<LaunchRecord> launch_record(const Compiled& compiled);

// The images that belong to the program's kernels.
std::vector<KernelImage> images_of(const Compiled& compiled, std::span<const KernelImage> images);

// Takes the images that belong to the program's kernels.
CompiledFusion compiled_fusion(const Compiled& compiled, std::span<const KernelImage> images,
                               InputSignature signature = {});
// The value has passed `decode_record`.
Compiled compiled_of(const CompiledFusion& fusion);

}  // namespace fusebox
