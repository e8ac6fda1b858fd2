// The layouts that ATen gives results, on the meta device.
//
// | result | layout |
// |---|---|
// | a function of elements | TensorIterator's: `at::meta` of one such function with as many operands stands for all |
// | a conversion, a clone | the operand's strides if they are dense, else dense ones in the same order |
// | a reshape | a view if the strides allow it, else contiguous |
// | a view | its own |
// | sum, max, min, cat, gather, scatter, triu | `at::meta` of the op itself |
// | index_select, full, iota, pad, take_along_axis, and whatever the reference computes | contiguous; pad keeps channels last |
//
// tests/property/aten_layouts_test.cc compares each with ATen's strides for real.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MetaFunctions.h>
#include <ATen/TensorUtils.h>

#include "replay/aten/native.h"

namespace fusebox::aten {

at::Tensor Native::like(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) const {
  return at::Tensor(at::detail::empty_strided_meta(sizes, strides, type));
}

at::Tensor Native::dense(at::IntArrayRef sizes, at::ScalarType type) const {
  return like(sizes, at::detail::defaultStrides(sizes), type);
}

at::Tensor Native::elements(at::ScalarType type, at::TensorList operands, const std::function<at::Tensor()>& f) const {
  if (!is_meta()) return f();
  std::vector<at::Tensor> floats;
  for (const at::Tensor& t : operands) floats.push_back(like(t.sizes(), t.strides(), at::kFloat));
  check_internal(!floats.empty() && floats.size() <= 3, "a function of elements has one to three operands");
  const at::Tensor made = floats.size() == 1   ? at::meta::neg(floats[0])
                          : floats.size() == 2 ? at::meta::add(floats[0], floats[1])
                                               : at::meta::addcmul(floats[0], floats[1], floats[2]);
  return like(made.sizes(), made.strides(), type);
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
