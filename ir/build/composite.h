// Composites: operations without a row in the op table, built from ops that have one.
//
// Invariants: bf16, half and float8 are computed in f32, and the result is cast back. All but `embedding` refuse a
// tensor that is not floating; `var` and `var_mean` take complex ones too. Axes may be negative. No axes means all axes.
//
//   VarMean r = var_mean(g, x, {-1}, {.correction = 0, .keepdim = true});   // as torch.var_mean
#pragma once

#include "ir/build/builder.h"

namespace fusebox {

struct VarOptions {
  int64_t correction = 1;
  bool keepdim = false;
  std::string_view name = {};
};
// Σ |x − mean|² / max(0, elements − correction): real if x is complex.
ValueId var(Graph& g, ValueId x, const Axes& axes, const VarOptions& options = {});
struct VarMean {
  ValueId var, mean;
};
VarMean var_mean(Graph& g, ValueId x, const Axes& axes, const VarOptions& options = {});

struct MeanOptions {
  bool keepdim = false;
  std::string_view name = {};
};
ValueId mean(Graph& g, ValueId x, const Axes& axes, const MeanOptions& options = {});

// exp(x − max) / Σ exp(x − max) along an axis.
ValueId softmax(Graph& g, ValueId x, int64_t axis, std::string_view name = {});

struct NormOptions {
  ValueId weight = {};  // has the trailing axes; none: no weight
  ValueId bias = {};
  double eps = 1e-5;
  std::string_view name = {};
};
// (x − mean) · rsqrt(var + eps) · weight + bias over the last `axes` axes, with the biased variance.
ValueId layer_norm(Graph& g, ValueId x, int64_t axes, const NormOptions& options = {});
// x · rsqrt(mean(x²) + eps) · weight + bias over the last `axes` axes.
ValueId rms_norm(Graph& g, ValueId x, int64_t axes, const NormOptions& options = {});

struct EmbeddingOptions {
  std::optional<double> max_norm = {};  // rows of a larger norm are scaled down to it; the weight itself stays as it is
  double norm_type = 2;                 // the p of the norm (Σ |x|^p)^(1/p)
  std::string_view name = {};
};
// The rows of `weight` [V, …] at the indices. The result's shape is that of the indices, then that of a row. With
// max_norm the weight is of floats and rank 2, and the rows are those that torch.nn.functional.embedding gives.
ValueId embedding(Graph& g, ValueId indices, ValueId weight, const EmbeddingOptions& options = {});

}  // namespace fusebox
