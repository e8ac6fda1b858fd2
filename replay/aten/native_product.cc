// A product of matrices with what follows it as one call (ir/infer/product_call.h).
//
// | where | how |
// |---|---|
// | GPU, 16 bits in whole vectors, with relu or gelu | `_addmm_activation`: cuBLASLt applies all while it stores; a bias of zeros if there is none |
// | GPU, otherwise with relu | as without, and relu in place |
// | GPU, f32 with gelu | as without, and gelu: cuBLASLt takes a slower product for gelu |
// | GPU, 16 bits otherwise, with gelu | as without and gelu, if nothing stands between; else part by part |
// | GPU, scale or bias alone | `addmm`: of cuBLASLt, or of cuBLAS where that is faster |
// | GPU, cast alone | `mm` with f32 as its result's dtype |
// | CPU; rows of one element or of one product; a scale of 0, or none that is finite | one part behind the other in float, rounded at the end |
//
// Where rows are not whole vectors of 16 bytes, cuBLASLt's epilogues round more than once, drop NaNs before relu, and are
// slow (seen on an H200 with CUDA 13.0). ATen does not ask cuBLASLt for rows of one element or of one product: it rounds
// before the activation then, and leaves the activation out if there is no product to add. A factor of 0 makes BLAS skip
// the product, and with it NaNs. On a CPU, ATen's call computes the other form of gelu.
#include <ATen/ATen.h>
#include <cmath>

#include "replay/aten/narrow_strides.h"
#include "replay/aten/native.h"
#include "replay/aten/wide_sums.h"

namespace fusebox::aten {
namespace {

struct Parts {
  at::Tensor rows, matrix;
  at::Tensor bias;  // undefined: none
  double scale = 1;
  Activation activation = Activation::kNone;
  at::ScalarType type;            // of the result
  bool is_product_whole = false;  // scale and bias are the product's own: its rounding stands before the activation

  int64_t columns() const { return matrix.size(1); }
};

at::Tensor activated(const at::Tensor& y, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return y;
    case Activation::kRelu:
      return at::relu(y);
    case Activation::kGelu:
      return at::gelu(y, "tanh");
  }
  check_internal(false, "an activation of no row");
  return {};
}

at::Tensor part_by_part(const Parts& p, bool has_wide_product) {
  const WideSums wide(sums_in_16_bits(p.rows));
  at::Tensor y =
      has_wide_product ? at::mm(p.rows, p.matrix, at::kFloat) : at::mm(p.rows.to(at::kFloat), p.matrix.to(at::kFloat));
  if (p.scale != 1) y = at::mul(y, p.scale);
  if (p.bias.defined()) y = at::add(y, p.bias.to(at::kFloat));
  return activated(y, p.activation).to(p.type);
}

// Whether each row, or each column if columns lie together, is whole vectors of 16 bytes. ATen copies other layouts.
bool is_in_vectors(const at::Tensor& t) {
  const int64_t width = 16 / t.element_size();
  const bool is_by_columns = t.stride(1) != 1 && t.stride(0) == 1;
  const bool is_copied = t.stride(1) != 1 && !is_by_columns;
  const int64_t along = is_by_columns ? 0 : 1;
  return t.size(along) % width == 0 && (is_copied || t.stride(1 - along) % width == 0) &&
         (is_copied || reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0);
}

// Whether cuBLAS is faster than cuBLASLt, although it wants the bias in every row of the result before: where rows are not
// whole vectors (2048 × 1000 × 513 in f16: 46 µs for 58), and in f32 where the result has few tiles, because it splits the
// depth (128 × 4096 × 4096: 109 µs for 172).
bool prefers_plain_library(const Parts& p, bool is_aligned) {
  constexpr int64_t kTile = 128, kFewTiles = 128;
  const auto tiles = [](int64_t n) { return (n + kTile - 1) / kTile; };
  if (p.rows.scalar_type() != at::kFloat) return !is_aligned;
  return tiles(p.rows.size(0)) * tiles(p.columns()) < kFewTiles && p.rows.size(1) > 2 * kTile;
}

at::Tensor without_activation(const Parts& p, const at::Tensor& bias, bool is_aligned) {
  if (bias.defined()) {
    const bool is_plain = prefers_plain_library(p, is_aligned);
    const at::Tensor addend = is_plain ? bias.expand({p.rows.size(0), p.columns()}) : bias;
    return at::addmm(addend, p.rows, p.matrix, /*beta=*/1, p.scale);
  }
  // With a beta of 0 the addend is not read.
  if (p.scale != 1) return at::addmm(at::empty({1}, p.rows.options()), p.rows, p.matrix, /*beta=*/0, p.scale);
  return p.type == p.rows.scalar_type() ? at::mm(p.rows, p.matrix) : at::mm(p.rows, p.matrix, p.type);
}

at::Tensor by_library(const Parts& p) {
  const WideSums wide(sums_in_16_bits(p.rows));
  const at::Tensor bias = p.bias.defined() ? p.bias.expand({p.columns()}).contiguous() : at::Tensor();
  const bool is_aligned = multiplies_whole_vectors(p.rows, p.matrix);
  const bool is_narrow = p.rows.scalar_type() != at::kFloat;
  if (p.activation != Activation::kNone && is_narrow && is_aligned)
    return at::_addmm_activation(bias.defined() ? bias : at::zeros({p.columns()}, p.rows.options()), p.rows, p.matrix,
                                 /*beta=*/1, p.scale, /*use_gelu=*/p.activation == Activation::kGelu);
  // What rounds before gelu must be a rounding of the program.
  if (p.activation == Activation::kGelu && is_narrow && !p.is_product_whole)
    return part_by_part(p, /*has_wide_product=*/true);
  const at::Tensor y = without_activation(p, bias, is_aligned);
  return p.activation == Activation::kRelu ? y.relu_() : activated(y, p.activation);
}

}  // namespace

bool multiplies_whole_vectors(const at::Tensor& rows, const at::Tensor& matrix) {
  const int64_t width = 16 / rows.element_size();
  return is_in_vectors(rows) && is_in_vectors(matrix) && rows.size(1) % width == 0 && matrix.size(1) % width == 0;
}

at::Tensor Native::called(const ProductCall& call) const {
  const Op& product = g_[call.product];
  const at::Tensor &a = values_[product.operands[0].index], &b = values_[product.operands[1].index];
  const int64_t depth = a.size(-1);
  int64_t count = 1;
  for (int64_t axis = 0; axis + 1 < a.dim(); ++axis) count *= a.size(axis);
  Parts p{.rows = with_narrow_strides(a.reshape({count, depth})),
          .matrix = with_narrow_strides(product.kind == OpKind::kLinear ? b.t() : b),
          .bias = call.bias ? values_[call.bias.index] : at::Tensor(),
          .scale = call.scale ? scalar(call.scale, Dtype::kFloat).item<double>() : 1,
          .activation = call.activation,
          .type = native_type(dtype(call.result)),
          .is_product_whole =
              !call.scale && (!call.bias || (product.operands.size() > 2 && product.operands[2] == call.bias))};
  const bool is_plain =
      device_.is_cuda() && depth > 1 && p.matrix.size(1) > 1 && p.scale != 0 && std::isfinite(p.scale);
  return (is_plain ? by_library(p) : part_by_part(p, /*has_wide_product=*/false))
      .reshape(declared_shape(call.result))
      .contiguous();
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
