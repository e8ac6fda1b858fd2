// Operands for libraries that hold strides in 32 bits, and products of matrices that may lie so far apart.
//
// ATen's scans on a CPU count elements, MKL and cuBLAS bytes: a product of f64 by a matrix whose rows lie 2^28 elements
// apart ended with a fault on a CPU, and one of bf16 by columns 2^30 elements apart with CUDA_ERROR_ILLEGAL_ADDRESS.
#pragma once

#include <ATen/ATen.h>
#include <algorithm>
#include <cstdint>

namespace fusebox::aten {

// The tensor, or a copy if 32 bits do not hold its strides in bytes.
inline at::Tensor with_narrow_strides(const at::Tensor& t) {
  const int64_t most = INT32_MAX / static_cast<int64_t>(t.element_size());
  return std::ranges::any_of(t.strides(), [&](int64_t stride) { return stride > most; })
             ? t.clone(at::MemoryFormat::Contiguous)
             : t;
}

inline at::Tensor product_of(const at::Tensor& a, const at::Tensor& b) {
  return at::matmul(with_narrow_strides(a), with_narrow_strides(b));
}

}  // namespace fusebox::aten
