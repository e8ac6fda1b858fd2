// Ops that ATen alone computes, from C++: products of matrices, scans, sorts, attention. No kernel has them, so each is a
// segment of its own that calls ATen. Shapes and dtypes are PyTorch's; operands are of one dtype, which nothing promotes.
//
//   ValueId y = linear(g, x, weight, bias);   // f32[%m, %k], f32[%n, %k], f32[%n] give f32[%m, %n]
//   const Extremes e = cummax(g, x, -1);      // e.values, e.indices
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/build/builder.h"

namespace fusebox {

// -- products. Operands are f16, bf16, f32, f64 or complex.
ValueId matmul(Graph& g, ValueId a, ValueId b, std::string_view name = {});
ValueId linear(Graph& g, ValueId x, ValueId weight, ValueId bias = {}, std::string_view name = {});
// `ends` has the end of each group of rows of `a`, of columns of `b`, or of the contracted axis, as i32 and in order.
// Rows and columns behind the last group are 0. The run fails with kIndexOutOfRange if the ends are in no order.
ValueId grouped_mm(Graph& g, ValueId a, ValueId b, ValueId ends, std::string_view name = {});

// (a · scale_a) (b · scale_b) + bias of a [m, k] and b [k, n], 8-bit floats. A scale is an f32 of rank 0, or has one
// number for each row of a or each column of b. The result is of f16, bf16 or f32, and so is the bias.
struct ScaledMmOptions {
  ValueId bias = {};
  Dtype dtype = Dtype::kBfloat16;
  std::string_view name = {};
};
ValueId scaled_mm(Graph& g, ValueId a, ValueId b, ValueId scale_a, ValueId scale_b,
                  const ScaledMmOptions& options = {});

// -- scans. Without a dtype, integers and bool give i64.
ValueId cumsum(Graph& g, ValueId x, int64_t axis, std::optional<Dtype> dtype = {}, std::string_view name = {});
ValueId cumprod(Graph& g, ValueId x, int64_t axis, std::optional<Dtype> dtype = {}, std::string_view name = {});
struct Extremes {
  ValueId values, indices;
};
// The index is that of the last of equal elements. NaN is both the least and the largest.
Extremes cummin(Graph& g, ValueId x, int64_t axis, const std::vector<std::string>& names = {});
Extremes cummax(Graph& g, ValueId x, int64_t axis, const std::vector<std::string>& names = {});

// -- sorts. Equal elements keep their order, and NaN is the largest.
struct SortOptions {
  bool descending = false;
  std::string_view name = {};
};
ValueId argsort(Graph& g, ValueId x, int64_t axis, const SortOptions& options = {});
struct TopkOptions {
  bool largest = true;  // false: the smallest elements, in ascending order
  std::vector<std::string> names = {};
};
Extremes topk(Graph& g, ValueId x, const Scalar& k, int64_t axis, const TopkOptions& options = {});

// -- attention: query [n, h, l, e], key [n, h, s, e], value [n, h, s, v]
struct AttentionOptions {
  bool causal = false;  // query i sees keys 0 to i
  ValueId scale = {};   // a scalar; none: 1 / √e
  std::vector<std::string> names = {};
};
struct Attention {
  ValueId output, log_sumexp;  // [n, h, l, v]; [n, h, l] of f32, or of f64 if the operands are
};
Attention sdpfa_fwd(Graph& g, ValueId query, ValueId key, ValueId value, const AttentionOptions& options = {});
struct AttentionGradient {
  ValueId query, key, value;
};
// `forward` is what sdpfa_fwd gave for the same operands and options.
AttentionGradient sdpfa_bwd(Graph& g, ValueId gradient, ValueId query, ValueId key, ValueId value,
                            const Attention& forward, const AttentionOptions& options = {});

// x with row k of `rows` added to its row index[k], for every k. An index outside of x fails with kIndexOutOfRange.
ValueId index_put_accumulate(Graph& g, ValueId x, ValueId index, ValueId rows, std::string_view name = {});
// x with every element of `source` added along the axis, at the place that `index` has for it, in the index's order:
// torch.scatter_add. An index outside of x fails with kIndexOutOfRange.
ValueId scatter_add(Graph& g, ValueId x, ValueId index, ValueId source, int64_t axis, std::string_view name = {});

}  // namespace fusebox
