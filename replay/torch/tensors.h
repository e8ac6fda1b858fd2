// What calls from Python need of PyTorch's tensors, of any device.
//
//   at::Tensor y = as_normal(*made, scalar_type(Dtype::kUint32));
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/COW.h>

namespace fusebox {

// The same elements as a tensor that PyTorch's callers may use as any other. A segment runs in inference mode, and its tensors stay
// of that kind. The storage is shared, so that PyTorch's allocator knows its memory: `record_stream` finds it by that. ATen keeps some
// dtypes as another one of the same size, so `type` may be another one than the tensor's.
inline at::Tensor as_normal(const at::Tensor& made, c10::ScalarType type) {
  if (!made.is_inference() && made.scalar_type() == type) return made;
  at::Tensor normal = at::empty({0}, made.options().dtype(type));
  normal.set_(made.storage(), made.storage_offset(), made.sizes(), made.strides());
  return normal;
}

// Whether the tensor still shares its memory with a lazy clone of it (torch._lazy_clone), or is one. It gets memory of its own when
// somebody asks for an address to write to.
inline bool is_cloned_lazily(const at::Tensor& t) { return c10::impl::cow::is_cow_data_ptr(t.storage().data_ptr()); }

}  // namespace fusebox
