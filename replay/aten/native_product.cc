// A product of matrices with what follows it as one call (ir/infer/product_call.h).
//
// | where | how |
// |---|---|
// | GPU, with gelu | `_addmm_activation`: cuBLASLt applies scale, bias and gelu while it stores; a bias of zeros if there is none |
// | GPU, with relu | as without, and relu in place: it must keep NaNs, and whether cuBLASLt's does was not seen |
// | GPU, scale or bias alone | `addmm` |
// | GPU, cast alone | `mm` with f32 as its result's dtype |
// | CPU; rows of one element or of one product; a scale of 0, or none that is finite | one part behind the other in float, rounded at the end |
//
// ATen does not ask cuBLASLt for rows of one element or of one product: it rounds before the activation then, and leaves the
// activation out if there is no product to add. A factor of 0 makes BLAS skip the product, and with it NaNs. On a CPU, ATen's
// call computes the other form of gelu.
#include <ATen/ATen.h>
#include <cmath>

#include "replay/aten/native.h"
#include "replay/aten/wide_sums.h"

namespace fusebox::aten {
namespace {

struct Parts {
  at::Tensor rows, matrix;
  at::Tensor bias;  // undefined: none
  double scale = 1;
  Activation activation = Activation::kNone;
  at::ScalarType type;  // of the result
};

at::Tensor part_by_part(const Parts& p) {
  const WideSums wide;
  at::Tensor y = at::mm(p.rows.to(at::kFloat), p.matrix.to(at::kFloat));
  if (p.scale != 1) y = at::mul(y, p.scale);
  if (p.bias.defined()) y = at::add(y, p.bias.to(at::kFloat));
  switch (p.activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      y = at::relu(y);
      break;
    case Activation::kGelu:
      y = at::gelu(y, "tanh");
      break;
  }
  return y.to(p.type);
}

at::Tensor without_activation(const Parts& p, const at::Tensor& bias) {
  if (bias.defined()) return at::addmm(bias, p.rows, p.matrix, /*beta=*/1, p.scale);
  // With a beta of 0 the addend is not read.
  if (p.scale != 1) return at::addmm(at::empty({1}, p.rows.options()), p.rows, p.matrix, /*beta=*/0, p.scale);
  return p.type == p.rows.scalar_type() ? at::mm(p.rows, p.matrix) : at::mm(p.rows, p.matrix, p.type);
}

at::Tensor by_library(const Parts& p) {
  const WideSums wide;
  const int64_t columns = p.matrix.size(1);
  const at::Tensor bias = p.bias.defined() ? p.bias.expand({columns}).contiguous() : at::Tensor();
  switch (p.activation) {
    case Activation::kNone:
      return without_activation(p, bias);
    case Activation::kRelu:
      return without_activation(p, bias).relu_();
    case Activation::kGelu:
      return at::_addmm_activation(bias.defined() ? bias : at::zeros({columns}, p.rows.options()), p.rows, p.matrix,
                                   /*beta=*/1, p.scale, /*use_gelu=*/true);
  }
  check_internal(false, "an activation of no row");
  return {};
}

}  // namespace

at::Tensor Native::called(const ProductCall& call) const {
  const Op& product = g_[call.product];
  const at::Tensor &a = values_[product.operands[0].index], &b = values_[product.operands[1].index];
  const int64_t depth = a.size(-1);
  int64_t count = 1;
  for (int64_t axis = 0; axis + 1 < a.dim(); ++axis) count *= a.size(axis);
  Parts p{.rows = a.reshape({count, depth}),
          .matrix = product.kind == OpKind::kLinear ? b.t() : b,
          .bias = call.bias ? values_[call.bias.index] : at::Tensor(),
          .scale = call.scale ? scalar(call.scale, Dtype::kFloat).item<double>() : 1,
          .activation = call.activation,
          .type = native_type(dtype(call.result))};
  const bool is_plain =
      device_.is_cuda() && depth > 1 && p.matrix.size(1) > 1 && p.scale != 0 && std::isfinite(p.scale);
  return (is_plain ? by_library(p) : part_by_part(p)).reshape(declared_shape(call.result)).contiguous();
}

void Native::run_call(const ProductCall& call) {
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    if (op.kind == OpKind::kInput || op.kind == OpKind::kSize || op.results.empty()) continue;
    if (!g_.is_tensor(op.results[0]) && !is_meta()) bind_scalars(id);
  }
  const at::Tensor made =
      is_meta() ? dense(declared_shape(call.result), native_type(dtype(call.result))) : called(call);
  // A call makes one output. Only seeded defects ask for more.
  for (const OutputRef& out : outputs(g_)) values_[out.value.index] = made.to(native_type(dtype(out.value)));
}

}  // namespace fusebox::aten
