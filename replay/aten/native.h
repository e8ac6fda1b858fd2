// A segment as ATen runs it: each op by ATen's own kernels, on the device of its tensors, with ATen's own strides. The
// same walk on the meta device tells the layouts before any data.
//
// Invariants: on meta no op goes through PyTorch's dispatcher where Python may have replaced its meta function: the C++
// meta functions are called directly (`at::meta`), or the rule of native_layouts.cc stands for the op. So no interpreter
// lock is taken. Ops and dtypes without a kernel of ATen's that keeps this project's rules are computed by the reference,
// on the CPU, and are contiguous; so an op that native*.cc does not know works too.
//
//   Native walk(form, bound, {.device = at::kCUDA});
//   walk.set(input, tensor);                                   // every input
//   walk.run(nullptr);  walk.value(output).strides()
#pragma once

#include <ATen/ATen.h>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "ir/infer/product_call.h"
#include "replay/aten/evaluator.h"

namespace fusebox::aten {

// The dtype in which ATen's kernels see elements. Dtypes without arithmetic of ATen's have one of their size: their
// elements are moved only.
at::ScalarType native_type(Dtype dtype);

// Whether all rows of a product of two matrices are whole vectors of 16 bytes, the result's too. cuBLASLt is slow
// otherwise.
bool multiplies_whole_vectors(const at::Tensor& rows, const at::Tensor& matrix);

class Native {
 public:
  Native(const Graph& form, std::span<const BoundInput> given, at::Device device);

  void set(ValueId v, at::Tensor t) { values_[v.index] = std::move(t); }
  const at::Tensor& value(ValueId v) const { return values_[v.index]; }
  // Computes the outputs: each op by itself, or all of them by one call (ir/infer/product_call.h) if there is one.
  void run(const ProductCall* call);
  // The tensors that the reference computed, on the CPU.
  const std::vector<ValueId>& referred() const { return referred_; }

 private:
  bool is_meta() const { return device_.is_meta(); }
  // Nothing if ATen has no kernel for the op and these dtypes.
  std::optional<std::vector<at::Tensor>> native(const Op& op);

  // -- native_pointwise.cc
  at::Tensor pointwise(const Op& op);
  at::Tensor real_pointwise(const Op& op, Dtype dtype, Dtype declared);
  at::Tensor integer_pointwise(const Op& op, Dtype dtype);
  at::Tensor wide_integers(const Op& op, Dtype dtype);                      // native_integer.cc
  at::Tensor complex_pointwise(const Op& op, Dtype dtype, Dtype declared);  // native_complex.cc
  at::Tensor cast(const at::Tensor& x, Dtype from, Dtype to) const;
  at::Tensor select(const Op& op);
  // A scalar as a tensor without axes.
  at::Tensor scalar(ValueId v, Dtype as) const;
  at::Tensor operand(ValueId v, Dtype as) const;

  // -- native_structure.cc
  at::Tensor view(const Op& op) const;
  at::Tensor indexed(const Op& op) const;
  at::Tensor placing(const Op& op) const;
  at::Tensor reduce(const Op& op) const;

  // -- native_library.cc
  std::optional<std::vector<at::Tensor>> library(const Op& op) const;
  at::Tensor multiplied(const at::Tensor& a, const at::Tensor& b, const at::Tensor& addend) const;
  at::Tensor grouped_product(const Op& op) const;
  at::Tensor scaled_product(const Op& op) const;
  std::vector<at::Tensor> attention(const Op& op) const;
  at::Tensor scanned(const Op& op) const;
  at::Tensor added(const Op& op) const;
  std::vector<at::Tensor> moments(const Op& op) const;
  std::vector<at::Tensor> dense_results(const Op& op) const;  // on meta

  // -- native_product.cc
  void run_call(const ProductCall& call);
  at::Tensor called(const ProductCall& call) const;

  // -- native_layouts.cc
  // The result of a function of elements, or on meta a tensor of the layout that it has.
  at::Tensor elements(at::ScalarType type, at::TensorList operands, const std::function<at::Tensor()>& f) const;
  // The same for a function of several of ATen's, whose last one may have another layout.
  at::Tensor laid_elements(at::ScalarType type, at::TensorList operands, const std::function<at::Tensor()>& f) const;
  at::Tensor converted(const at::Tensor& t, at::ScalarType type) const;
  // The tensor that ATen's clone makes on the meta device, in this type.
  at::Tensor cloned(const at::Tensor& t, at::ScalarType type) const;
  at::Tensor like(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) const;  // on meta
  at::Tensor dense(at::IntArrayRef sizes, at::ScalarType type) const;                          // on meta
  at::Tensor reshaped(const at::Tensor& t, at::IntArrayRef shape) const;

  // By the reference.
  void bind_scalars(OpId id);
  std::vector<at::Tensor> by_reference(OpId id);
  std::vector<int64_t> declared_shape(ValueId v) const;
  int64_t integer(ValueId v) const;
  std::vector<int64_t> integers(const Op& op, size_t slot) const;
  Dtype dtype(ValueId v) const { return g_[v].dtype; }
  bool has(const Op& op, size_t i) const { return i < op.operands.size() && op.operands[i]; }

  const Graph& g_;
  const at::Device device_;
  Bindings bindings_;
  std::vector<at::Tensor> values_;
  std::optional<Evaluator> reference_;
  std::vector<ValueId> referred_;
};

}  // namespace fusebox::aten
