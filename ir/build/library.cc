#include "ir/build/library.h"

namespace fusebox {
namespace {

std::vector<ValueId> append(Graph& g, OpKind kind, std::vector<ValueId> operands, Attrs attrs,
                            const std::vector<std::string>& names) {
  return g[add_op(g, Graph::body(), kind, std::move(operands), std::move(attrs), names)].results;
}

ValueId append_one(Graph& g, OpKind kind, std::vector<ValueId> operands, Attrs attrs, std::string_view name) {
  return append(g, kind, std::move(operands), std::move(attrs), {std::string(name)})[0];
}

Attrs axis_attr(int64_t axis) {
  Attrs attrs;
  attrs.set(AttrKey::kAxis, axis);
  return attrs;
}

ValueId scan(Graph& g, OpKind kind, ValueId x, int64_t axis, std::optional<Dtype> dtype, std::string_view name) {
  Attrs attrs = axis_attr(axis);
  if (dtype) attrs.set(AttrKey::kDtypeAttr, *dtype);
  return append_one(g, kind, {x}, std::move(attrs), name);
}

Extremes extremes(const std::vector<ValueId>& results) { return {results[0], results[1]}; }

Attrs attention_attrs(const AttentionOptions& options) {
  Attrs attrs;
  if (options.causal) attrs.set_flag(AttrKey::kCausal);
  return attrs;
}

}  // namespace

ValueId matmul(Graph& g, ValueId a, ValueId b, std::string_view name) {
  return append_one(g, OpKind::kMatmul, {a, b}, {}, name);
}
ValueId linear(Graph& g, ValueId x, ValueId weight, ValueId bias, std::string_view name) {
  return append_one(g, OpKind::kLinear, {x, weight, bias}, {}, name);
}
ValueId grouped_mm(Graph& g, ValueId a, ValueId b, ValueId ends, std::string_view name) {
  return append_one(g, OpKind::kGroupedMm, {a, b, ends}, {}, name);
}
ValueId scaled_mm(Graph& g, ValueId a, ValueId b, ValueId scale_a, ValueId scale_b, const ScaledMmOptions& options) {
  Attrs attrs;
  attrs.set(AttrKey::kDtypeAttr, options.dtype);
  return append_one(g, OpKind::kScaledMm, {a, b, scale_a, scale_b, options.bias}, std::move(attrs), options.name);
}

ValueId cumsum(Graph& g, ValueId x, int64_t axis, std::optional<Dtype> dtype, std::string_view name) {
  return scan(g, OpKind::kCumsum, x, axis, dtype, name);
}
ValueId cumprod(Graph& g, ValueId x, int64_t axis, std::optional<Dtype> dtype, std::string_view name) {
  return scan(g, OpKind::kCumprod, x, axis, dtype, name);
}
Extremes cummin(Graph& g, ValueId x, int64_t axis, const std::vector<std::string>& names) {
  return extremes(append(g, OpKind::kCummin, {x}, axis_attr(axis), names));
}
Extremes cummax(Graph& g, ValueId x, int64_t axis, const std::vector<std::string>& names) {
  return extremes(append(g, OpKind::kCummax, {x}, axis_attr(axis), names));
}

ValueId argsort(Graph& g, ValueId x, int64_t axis, const SortOptions& options) {
  Attrs attrs = axis_attr(axis);
  if (options.descending) attrs.set_flag(AttrKey::kDescending);
  return append_one(g, OpKind::kArgsort, {x}, std::move(attrs), options.name);
}
Extremes topk(Graph& g, ValueId x, const Scalar& k, int64_t axis, const TopkOptions& options) {
  Attrs attrs = axis_attr(axis);
  if (options.largest) attrs.set_flag(AttrKey::kLargest);
  const ValueId count = scalar_of(g, k);
  return extremes(append(g, OpKind::kTopk, {x, count}, std::move(attrs), options.names));
}

Attention sdpfa_fwd(Graph& g, ValueId query, ValueId key, ValueId value, const AttentionOptions& options) {
  const auto made =
      append(g, OpKind::kSdpfaFwd, {query, key, value, options.scale}, attention_attrs(options), options.names);
  return {made[0], made[1]};
}
AttentionGradient sdpfa_bwd(Graph& g, ValueId gradient, ValueId query, ValueId key, ValueId value,
                            const Attention& forward, const AttentionOptions& options) {
  const auto made =
      append(g, OpKind::kSdpfaBwd, {gradient, query, key, value, forward.output, forward.log_sumexp, options.scale},
             attention_attrs(options), options.names);
  return {made[0], made[1], made[2]};
}

ValueId index_put_accumulate(Graph& g, ValueId x, ValueId index, ValueId rows, std::string_view name) {
  return append_one(g, OpKind::kIndexPutAccumulate, {x, index, rows}, {}, name);
}
ValueId scatter_add(Graph& g, ValueId x, ValueId index, ValueId source, int64_t axis, std::string_view name) {
  return append_one(g, OpKind::kScatterAdd, {x, index, source}, axis_attr(axis), name);
}

}  // namespace fusebox
