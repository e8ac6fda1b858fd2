// The layout of a tensor in memory: sizes and strides by axis, strides in elements. A broadcast that is not stored has the
// stride 0.
//
//   TensorLayout{.shape = {2, 3}, .strides = {3, 1}}
#pragma once

#include <cstdint>
#include <vector>

namespace fusebox {

struct TensorLayout {
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};
  bool operator==(const TensorLayout&) const = default;
};

}  // namespace fusebox
