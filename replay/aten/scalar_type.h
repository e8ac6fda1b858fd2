// PyTorch's dtype for each of ours, by the names in the table of dtypes. Header only, so that modules that do not link
// each other share it.
#pragma once

#include <array>
#include <c10/core/ScalarType.h>

#include "ir/table/dtype.h"

namespace fusebox {

// Undefined if this PyTorch has no such dtype, and for pairs of float4, which few of its functions take.
inline c10::ScalarType scalar_type(Dtype dtype) {
  static const auto kTypes = [] {
    std::array<c10::ScalarType, kDtypeRows.size()> types;
    types.fill(c10::ScalarType::Undefined);
    for (size_t d = 0; d < types.size(); ++d)
      for (int i = 0; i < static_cast<int>(c10::ScalarType::Undefined); ++i)
        if (kDtypeRows[d].aten == c10::toString(static_cast<c10::ScalarType>(i)))
          types[d] = static_cast<c10::ScalarType>(i);
    types[static_cast<size_t>(Dtype::kFloat4E2m1x2)] = c10::ScalarType::Undefined;
    return types;
  }();
  return kTypes[static_cast<size_t>(dtype)];
}

}  // namespace fusebox
