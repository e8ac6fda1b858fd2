// How many bytes of parameters a kernel may have.
#pragma once

#include <optional>
#include <string>

#include "ir/module/module.h"

namespace fusebox {

// CUDA programming guide, since CUDA 12.1 and architecture 7.0.
inline constexpr int64_t kMostParameterBytes = 32764;
inline constexpr int64_t kPointerBytes = 8;

// Why no kernel can have the fusion's tensors, strides and scalar inputs as parameters: a clause, for a scheduler's refusal.
// Sizes are not counted, as most are equal to one another.
std::optional<std::string> too_many_parameters(const Graph& fusion);

}  // namespace fusebox
