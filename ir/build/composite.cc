#include "ir/build/composite.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// The tensor in the dtype in which a composite computes. Throws if it is not floating.
ValueId widened(Graph& g, ValueId x, std::string_view what) {
  const Dtype d = g[x].dtype;
  if (!is_floating(d))
    throw Error(ErrorCode::kDtypeMismatch,
                std::string(what) + " needs a floating tensor, not " + std::string(text(d)) + "; cast it first",
                "%" + g[x].name);
  return is_reduced_float(d) ? cast(g, x, Dtype::kFloat) : x;
}

ValueId narrowed(Graph& g, ValueId x, Dtype dtype, std::string_view name) {
  return g[x].dtype == dtype ? unary(g, OpKind::kSet, x, name) : cast(g, x, dtype, name);
}

Axes normal_axes(const Graph& g, ValueId x, const Axes& axes) {
  const int64_t rank = static_cast<int64_t>(rank_of(g, x));
  Axes result;
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i) result.push_back(i);
  for (int64_t a : axes) {
    if (a < -rank || a >= rank)
      throw Error(ErrorCode::kBadAxis, "a tensor of rank " + std::to_string(rank) + " has no axis " + std::to_string(a),
                  "%" + g[x].name);
    result.push_back(a < 0 ? a + rank : a);
  }
  return result;
}

Axes last_axes(const Graph& g, ValueId x, int64_t count) {
  const int64_t rank = static_cast<int64_t>(rank_of(g, x));
  if (count < 1 || count > rank)
    throw Error(ErrorCode::kBadAxis, "a norm is over 1 to " + std::to_string(rank) + " trailing axes", "%" + g[x].name);
  Axes axes;
  for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
  return axes;
}

ValueId element_count(Graph& g, ValueId x, const Axes& axes) {
  ValueId n = constant_index(g, 1);
  for (int64_t a : axes) n = scalar::mul(g, Graph::body(), n, size_of(g, x, a));
  return n;
}

// What a variance of n elements is divided by. A negative correction must leave 0 for no elements, whose variance is NaN.
ValueId degrees_of_freedom(Graph& g, ValueId n, int64_t correction) {
  const RegionId body = Graph::body();
  const ValueId freedom =
      scalar::maximum(g, body, scalar::sub(g, body, n, constant_index(g, correction)), constant_index(g, 0));
  if (correction >= 0) return freedom;
  return scalar::mul(g, body, freedom, scalar::minimum(g, body, n, constant_index(g, 1)));
}

ValueId kept(Graph& g, ValueId x, const Axes& axes, size_t rank, bool keepdim) {
  if (!keepdim) return x;
  std::vector<bool> mask(rank);
  for (int64_t a : axes) mask[static_cast<size_t>(a)] = true;
  return broadcast(g, x, mask);
}

// The mean as sum / count, which is NaN for no elements. A welford gives 0 there, so that merging an empty part changes
// nothing.
ValueId mean_of(Graph& g, const WelfordResult& w, ValueId count) {
  if (constant_integer(g, count).value_or(0) > 0) return w.avg;
  const ValueId is_any = scalar::lt(g, Graph::body(), constant_index(g, 0), count);
  return where(g, is_any, w.avg, constant_of(g, Dtype::kDouble, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace

VarMean var_mean(Graph& g, ValueId x, const Axes& given, const VarOptions& options) {
  if (is_complex(g[x].dtype)) {
    // The variance of complex numbers is that of both parts.
    const VarOptions unnamed{.correction = options.correction, .keepdim = options.keepdim, .name = {}};
    const VarMean real = var_mean(g, unary(g, OpKind::kReal, x), given, unnamed);
    const VarMean imag = var_mean(g, unary(g, OpKind::kImag, x), given, unnamed);
    return {add(g, real.var, imag.var, options.name), binary(g, OpKind::kComplex, real.mean, imag.mean)};
  }
  const Axes axes = normal_axes(g, x, given);
  const size_t rank = rank_of(g, x);
  const Dtype dtype = g[x].dtype;
  const ValueId wide = widened(g, x, "var");
  const WelfordResult w = welford(g, wide, axes);
  const ValueId n = element_count(g, x, axes);
  const ValueId freedom = degrees_of_freedom(g, n, options.correction);
  const ValueId variance = truediv(g, w.var_sum, freedom);
  return {narrowed(g, kept(g, variance, axes, rank, options.keepdim), dtype, options.name),
          narrowed(g, kept(g, mean_of(g, w, n), axes, rank, options.keepdim), dtype, {})};
}

ValueId var(Graph& g, ValueId x, const Axes& given, const VarOptions& options) {
  if (is_complex(g[x].dtype)) return var_mean(g, x, given, options).var;
  const Axes axes = normal_axes(g, x, given);
  const ValueId wide = widened(g, x, "var");
  const WelfordResult w = welford(g, wide, axes);
  const ValueId n = element_count(g, x, axes);
  const ValueId freedom = degrees_of_freedom(g, n, options.correction);
  const ValueId variance = kept(g, truediv(g, w.var_sum, freedom), axes, rank_of(g, x), options.keepdim);
  return narrowed(g, variance, g[x].dtype, options.name);
}

ValueId mean(Graph& g, ValueId x, const Axes& given, const MeanOptions& options) {
  const Axes axes = normal_axes(g, x, given);
  const ValueId wide = widened(g, x, "mean");
  const ValueId total = sum(g, wide, axes, {.keepdim = options.keepdim});
  return narrowed(g, truediv(g, total, element_count(g, x, axes)), g[x].dtype, options.name);
}

ValueId softmax(Graph& g, ValueId x, int64_t axis, std::string_view name) {
  const Axes axes = normal_axes(g, x, {axis});
  const ValueId wide = widened(g, x, "softmax");
  const ValueId e = unary(g, OpKind::kExp, sub(g, wide, max(g, wide, axes, {.keepdim = true})));
  const ValueId y = truediv(g, e, sum(g, e, axes, {.keepdim = true}));
  return narrowed(g, y, g[x].dtype, name);
}

ValueId layer_norm(Graph& g, ValueId x, int64_t count, const NormOptions& options) {
  const Axes axes = last_axes(g, x, count);
  const size_t rank = rank_of(g, x);
  const ValueId wide = widened(g, x, "layer_norm");
  const WelfordResult w = welford(g, wide, axes);
  const ValueId variance = truediv(g, w.var_sum, element_count(g, x, axes));
  const ValueId scale = unary(g, OpKind::kRsqrt, add(g, variance, constant_of(g, Dtype::kDouble, options.eps)));
  ValueId y = mul(g, sub(g, wide, kept(g, w.avg, axes, rank, true)), kept(g, scale, axes, rank, true));
  if (options.weight) y = mul(g, y, options.weight);
  if (options.bias) y = add(g, y, options.bias);
  return narrowed(g, y, g[x].dtype, options.name);
}

ValueId rms_norm(Graph& g, ValueId x, int64_t count, const NormOptions& options) {
  const Axes axes = last_axes(g, x, count);
  const ValueId wide = widened(g, x, "rms_norm");
  const ValueId squares = mean(g, mul(g, wide, wide), axes, {.keepdim = true});
  const ValueId scale = unary(g, OpKind::kRsqrt, add(g, squares, constant_of(g, Dtype::kDouble, options.eps)));
  ValueId y = mul(g, wide, scale);
  if (options.weight) y = mul(g, y, options.weight);
  if (options.bias) y = add(g, y, options.bias);
  return narrowed(g, y, g[x].dtype, options.name);
}

namespace {

// Rows whose p-norm is beyond the most are scaled to it. As in ATen, 1e-7 is added to the norm before the division.
ValueId limited(Graph& g, ValueId rows, const EmbeddingOptions& options) {
  const double p = options.norm_type;
  const auto number = [&](double x) { return constant_of(g, Dtype::kDouble, x); };
  const ValueId wide = widened(g, rows, "embedding"), size = unary(g, OpKind::kAbs, wide);
  ValueId norm;
  if (std::isinf(p))
    norm = p > 0 ? max(g, size, {-1}, {.keepdim = true}) : min(g, size, {-1}, {.keepdim = true});
  else if (p == 2)
    norm = unary(g, OpKind::kSqrt, sum(g, mul(g, wide, wide), {-1}, {.keepdim = true}));
  else if (p == 1)
    norm = sum(g, size, {-1}, {.keepdim = true});
  else if (p == 0)
    norm = sum(g, cast(g, binary(g, OpKind::kNe, wide, number(0)), g[wide].dtype), {-1}, {.keepdim = true});
  else
    norm = binary(g, OpKind::kPow, sum(g, binary(g, OpKind::kPow, size, number(p)), {-1}, {.keepdim = true}),
                  number(1 / p));
  const ValueId most = number(*options.max_norm);
  const ValueId scale = truediv(g, most, add(g, norm, number(1e-7)));
  const ValueId scaled = mul(g, wide, scale);
  return narrowed(g, where(g, binary(g, OpKind::kGt, norm, most), scaled, wide), g[rows].dtype, options.name);
}

}  // namespace

ValueId embedding(Graph& g, ValueId indices, ValueId weight, const EmbeddingOptions& options) {
  const size_t rank = rank_of(g, indices), row_rank = rank_of(g, weight);
  if (row_rank < 1)
    throw Error(ErrorCode::kRankMismatch, "embedding needs a weight of rank 1 or more", "%" + g[weight].name);
  if (options.max_norm) {
    if (row_rank != 2)
      throw Error(ErrorCode::kRankMismatch, "embedding with max_norm needs a weight of rank 2", "%" + g[weight].name);
    if (!(*options.max_norm >= 0) || std::isnan(options.norm_type))
      throw Error(ErrorCode::kBadAttribute, "embedding takes a max_norm of 0 or more, and a norm_type that is a number",
                  "%" + g[weight].name);
    return limited(g, embedding(g, indices, weight), options);
  }
  const std::string_view name = options.name;
  if (rank == 1) return index_select(g, weight, indices, 0, name);
  Shape shape;
  ValueId count = constant_index(g, 1);
  for (size_t i = 0; i < rank; ++i) {
    shape.push_back(size_of(g, indices, static_cast<int64_t>(i)));
    count = scalar::mul(g, Graph::body(), count, shape.back().value);
  }
  for (size_t i = 1; i < row_rank; ++i) shape.push_back(size_of(g, weight, static_cast<int64_t>(i)));
  return reshape(g, index_select(g, weight, reshape(g, indices, {count}), 0), shape, name);
}

}  // namespace fusebox
