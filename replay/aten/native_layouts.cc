// The layouts that ATen gives results, on the meta device.
//
// | result | layout |
// |---|---|
// | a function of elements | TensorIterator's: `at::meta` of one such function with as many operands stands for all; a function that is several of ATen's is copied to this layout if it has another |
// | a conversion, a clone | the operand's strides if they are dense, else dense ones in the same order |
// | a reshape | a view if the strides allow it, else contiguous |
// | a view | its own |
// | sum, max, min, cat, gather, scatter, triu | `at::meta` of the op itself |
// | index_select, full, iota, pad, take_along_axis, prod, and whatever the reference computes | contiguous; pad keeps channels last |
// | products of matrices, scans, sorts, attention, sums at places, welford (native_library.cc) | contiguous |
//
// tests/property/aten_layouts_test.cc compares each with ATen's strides for real.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MetaFunctions.h>
#include <ATen/TensorUtils.h>

#include "replay/aten/native.h"

namespace fusebox::aten {

namespace {

at::Tensor meta_like(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  return at::Tensor(at::detail::empty_strided_meta(sizes, strides, type));
}

// The result of a function of elements, on meta.
at::Tensor laid_by_iterator(at::TensorList operands) {
  std::vector<at::Tensor> floats;
  for (const at::Tensor& t : operands) floats.push_back(meta_like(t.sizes(), t.strides(), at::kFloat));
  check_internal(!floats.empty() && floats.size() <= 4, "a function of elements has one to four operands");
  if (floats.size() == 1) return at::meta::neg(floats[0]);
  if (floats.size() == 2) return at::meta::add(floats[0], floats[1]);
  const at::Tensor three = at::meta::addcmul(floats[0], floats[1], floats[2]);
  return floats.size() == 3 ? three : at::meta::add(three, floats[3]);
}

}  // namespace

at::Tensor Native::like(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) const {
  return meta_like(sizes, strides, type);
}

at::Tensor Native::dense(at::IntArrayRef sizes, at::ScalarType type) const {
  return like(sizes, at::detail::defaultStrides(sizes), type);
}

at::Tensor Native::elements(at::ScalarType type, at::TensorList operands, const std::function<at::Tensor()>& f) const {
  if (!is_meta()) return f();
  const at::Tensor made = laid_by_iterator(operands);
  return like(made.sizes(), made.strides(), type);
}

at::Tensor Native::laid_elements(at::ScalarType type, at::TensorList operands,
                                 const std::function<at::Tensor()>& f) const {
  const at::Tensor layout = laid_by_iterator(operands);
  if (is_meta()) return like(layout.sizes(), layout.strides(), type);
  const at::Tensor made = f();
  if (made.sizes() == layout.sizes() && made.strides() == layout.strides() && made.device() == device_) return made;
  const at::Tensor laid = at::empty_strided(layout.sizes(), layout.strides(), at::TensorOptions(type).device(device_));
  laid.copy_(made);
  return laid;
}

at::Tensor Native::converted(const at::Tensor& t, at::ScalarType type) const {
  if (!is_meta()) return t.to(type);
  return t.scalar_type() == type ? t : cloned(t, type);
}

at::Tensor Native::cloned(const at::Tensor& t, at::ScalarType type) const {
  if (t.is_non_overlapping_and_dense()) return like(t.sizes(), t.strides(), type);
  return like(t.sizes(), at::infer_dense_strides(t.sizes(), t.strides()), type);
}

at::Tensor Native::reshaped(const at::Tensor& t, at::IntArrayRef shape) const {
  if (!is_meta()) return at::reshape(t, shape);
  const auto strides = at::detail::computeStride(t.sizes(), t.strides(), shape);
  return strides ? like(shape, *strides, t.scalar_type()) : dense(shape, t.scalar_type());
}

}  // namespace fusebox::aten
