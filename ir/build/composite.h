// Composites: operations that have no row in the op table, built from those that do.
//
// Invariants: bf16, half and float8 are computed in f32 and the result is cast back; integers are refused where ATen
// refuses them (var, mean of an integer) unless said otherwise. Axes may be negative; none: all axes.
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
// Σ (x − mean)² / max(0, elements − correction).
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
  ValueId weight = {};  // of the trailing axes, or none
  ValueId bias = {};
  double eps = 1e-5;
  std::string_view name = {};
};
// Over the last `axes` axes: (x − mean) · rsqrt(var + eps) · weight + bias, with the biased variance.
ValueId layer_norm(Graph& g, ValueId x, int64_t axes, const NormOptions& options = {});
// Over the last `axes` axes: x · rsqrt(mean(x²) + eps) · weight.
ValueId rms_norm(Graph& g, ValueId x, int64_t axes, const NormOptions& options = {});

// Rows of `weight` [V, …] at the indices, which may have any rank: indices' shape, then the row's.
ValueId embedding(Graph& g, ValueId indices, ValueId weight, std::string_view name = {});

}  // namespace fusebox
