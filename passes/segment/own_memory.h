// Whether an output that overwrites an input has memory of its own. Such an output is made beside the input, and copied
// over it at the end of the run. The steps of the segment that makes it say so: they keep the output in global memory by
// the step `set_memory_type`. Without that step an output lies over its input wherever the segmentation allows it.
//
//   steps.push_back(own_memory_step("s"));   // set_memory_type %s in global
//   has_own_memory(steps, "s")               // true
#pragma once

#include <span>
#include <string>

#include "ir/module/module.h"

namespace fusebox {

// The name that an output of a segment has after these steps: `cache_fork` makes a copy the output.
std::string output_after(std::span<const Step> steps, std::string output);
// Whether the output, by its name before the steps, is kept in global memory by one of them.
bool has_own_memory(std::span<const Step> steps, std::string output);
// Gives the output memory of its own. It goes behind all other steps, with the name that the output has after them.
Step own_memory_step(const std::string& output);

}  // namespace fusebox
