// The arguments and results of a program: tensors in host memory, with a layout, and scalars.
//
// Invariants of TensorData: shape and strides have one entry an axis, strides are ≥ 0 and count elements. Element (i,
// j, …) lies at position `offset + i * strides[0] + j * strides[1] + …` of the storage, in [0, storage_elems). Storage
// starts at a multiple of kStorageAlign bytes, so the offset alone tells the alignment of an element. Copies share the
// storage.
//
//   TensorData t = allocate_tensor(Dtype::kFloat, {2, 3});
//   store_element(t, position_of(t, std::vector<int64_t>{1, 2}), constant_bits(t.dtype, 1.5));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "ir/scalar/scalar.h"
#include "ir/table/dtype.h"

namespace fusebox {

inline constexpr size_t kStorageAlign = 256;

struct TensorData {
  Dtype dtype = Dtype::kFloat;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  int64_t storage_elems = 0;
  std::shared_ptr<std::byte> storage;  // keeps the owner of the memory alive

  size_t rank() const { return shape.size(); }
  // The byte of element (0, 0, …).
  std::byte* data() const { return storage.get() + offset * size_bytes(dtype); }
};

int64_t element_count(std::span<const int64_t> shape);
std::vector<int64_t> contiguous_strides(std::span<const int64_t> shape);
// The number of positions from element (0, 0, …) to behind the last one; 0 if there is no element.
int64_t span_elems(std::span<const int64_t> shape, std::span<const int64_t> strides);
bool is_contiguous(const TensorData& t);
// Whether two elements share a position. With `besides_broadcast`, axes of stride 0 do not count.
bool overlaps(std::span<const int64_t> shape, std::span<const int64_t> strides, bool besides_broadcast = false);

// Whether nearly all of a large storage lies between the elements. Such a storage is reserved: a page takes memory when
// it is touched, and the functions here touch only pages with elements.
bool is_sparse(Dtype dtype, std::span<const int64_t> shape, int64_t storage_elems);
inline bool is_sparse(const TensorData& t) { return is_sparse(t.dtype, t.shape, t.storage_elems); }

// Zeroed storage of exactly the needed size. Empty strides mean contiguous. Throws kBadInputSpec for a shape, strides
// or an offset that break the invariants, kOutOfMemory.
TensorData allocate_tensor(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {},
                           int64_t offset = 0);
// Memory of another owner, such as a torch tensor. The owner's alignment is not checked.
TensorData external_tensor(Dtype dtype, void* data, std::vector<int64_t> shape, std::vector<int64_t> strides,
                           std::shared_ptr<void> owner);

// -- one element, by its position in the storage
int64_t position_of(const TensorData& t, std::span<const int64_t> index);
ConstantBits load_element(const TensorData& t, int64_t position);
void store_element(const TensorData& t, int64_t position, ConstantBits bits);

// Calls f(position, stride, count) for each run of elements along the last axis, in row-major order of the index. A
// tensor without axes is one run of one element.
template <class F>
void for_each_run(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t offset, F&& f) {
  if (element_count(shape) == 0) return;
  if (shape.empty()) return f(offset, int64_t{1}, int64_t{1});
  const size_t outer = shape.size() - 1;
  std::vector<int64_t> index(outer);
  for (int64_t position = offset;;) {
    f(position, strides[outer], shape[outer]);
    size_t axis = outer;
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) {
      --axis;
      position -= (shape[axis] - 1) * strides[axis];
      index[axis] = 0;
    }
    if (axis == 0) return;
    position += strides[axis - 1];
  }
}
template <class F>
void for_each_run(const TensorData& t, F&& f) {
  for_each_run(t.shape, t.strides, t.offset, static_cast<F&&>(f));
}

TensorData contiguous_copy(const TensorData& t);
// Both have the same shape and dtype.
void copy_elements(const TensorData& to, const TensorData& from);
// A contiguous copy with each element converted as `cast` does it.
TensorData converted_copy(const TensorData& t, Dtype dtype);
// A copy of the whole storage, with the bytes between the elements: an input as it was before a run. A sparse storage
// gives only its elements.
TensorData deep_copy(const TensorData& t);

// One flag for each position of a storage: whether it holds a value. The host executor keeps the flags up to date. The
// flags of a sparse storage are reserved as the storage is.
class DefinedElements {
 public:
  static DefinedElements none(const TensorData& t) { return DefinedElements(t); }
  // Exactly the positions of the tensor's elements.
  static DefinedElements of_elements(const TensorData& t) {
    DefinedElements d(t);
    d.define(t);
    return d;
  }
  // Every position.
  static DefinedElements all(const TensorData& t);

  DefinedElements(DefinedElements&&) = default;
  DefinedElements& operator=(DefinedElements&&) = default;
  DefinedElements(const DefinedElements&) = delete;
  DefinedElements& operator=(const DefinedElements&) = delete;

  std::span<uint8_t> flags() const { return flags_; }
  bool operator[](int64_t position) const { return flags_[static_cast<size_t>(position)] != 0; }
  // Marks the elements of a tensor of this storage as holding values.
  void define(const TensorData& t);
  // The first position of an element of that tensor without a value.
  std::optional<int64_t> first_missing(const TensorData& t) const;

 private:
  explicit DefinedElements(const TensorData& t);
  std::vector<uint8_t> small_;
  std::shared_ptr<std::byte> reserved_;  // if the storage is sparse
  std::span<uint8_t> flags_;
};

// The positions of a tensor's elements, in row-major order of the index.
std::vector<int64_t> positions_of(const TensorData& t);

// Covers dtype, shape, strides and the elements' bytes in row-major order of the index. The bytes of undefined elements
// are left out, but their positions count.
Digest digest(const TensorData& t, const DefinedElements* defined = nullptr);

// `f32[2, 3] strides [1, 2]`; strides only if they are not contiguous.
std::string describe(const TensorData& t);

// A scalar's bits, or a tensor.
struct Argument {
  bool is_scalar = false;
  Dtype dtype = Dtype::kFloat;
  ConstantBits bits;
  TensorData tensor;

  static Argument scalar(Dtype dtype, ConstantBits bits) { return {true, dtype, bits, {}}; }
  static Argument of(TensorData tensor) {
    const Dtype d = tensor.dtype;
    return {false, d, {}, std::move(tensor)};
  }
};

// The arguments as bind_sizes (ir/scalar/scalar.h) takes them.
std::vector<BoundInput> bound_inputs(std::span<const Argument> arguments);

}  // namespace fusebox
