// ATen segments for the module's entry point (replay/device/aten_api.h has the contracts).
#pragma once

#include <span>
#include <vector>

#include "replay/device/aten_api.h"

namespace fusebox::aten {

std::vector<AtenValue> run_segment(const Graph& segment, std::span<const AtenValue> given, const AtenPlace& place,
                                   const ProductCall* call);
std::vector<TensorLayout> infer_segment(const Graph& segment, std::span<const BoundInput> given,
                                        const ProductCall* call);
std::vector<std::string> referred_values(const Graph& segment, std::span<const BoundInput> given);
AtenValue copied_tensor(const AtenValue& from, std::span<const int64_t> strides, const AtenPlace& place);
// Loads PyTorch's library for GPUs, if there is one, at the first call.
bool can_use_gpu();

}  // namespace fusebox::aten
