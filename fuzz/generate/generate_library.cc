// Ops that ATen alone computes, with operands whose extents fit together. Extents are small, because the elements that
// these ops make are sums of many products.
#include <algorithm>

#include "fuzz/generate/fusion_maker.h"
#include "ir/build/library.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {

std::vector<ValueId> FusionMaker::library(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
      if (auto made = drawn_projection(kind); !made.empty()) return made;
      return {matrix_product()};
    case OpKind::kLinear:
      if (auto made = drawn_projection(kind); !made.empty()) return made;
      return {linear_layer()};
    case OpKind::kGroupedMm:
      return {grouped_product()};
    case FUSEBOX_SCAN_OPS:
    case FUSEBOX_SORT_OPS:
      return along_axis(kind);
    case FUSEBOX_ATTENTION_OPS:
      return attention(kind);
    case OpKind::kScaledMm:
      if (const ValueId made = scaled_product()) return {made};
      return {};
    case OpKind::kIndexPutAccumulate:
      return added_rows();
    case OpKind::kScatterAdd:
      return added_elements();
    case FUSEBOX_NON_LIBRARY_OPS:
      break;
  }
  not_in_family(kind, "is not computed by a library");
}

// With what follows a product in models, if that can be made here.
std::vector<ValueId> FusionMaker::drawn_projection(OpKind kind) {
  if (random_.one_in(2)) return {};
  const ValueId x = operand(kind, 2);
  const Dtype dtype = g_[x].dtype;
  if (dtype != Dtype::kHalf && dtype != Dtype::kBfloat16 && dtype != Dtype::kFloat) return {};
  for (OpKind needed : {OpKind::kCast, OpKind::kMul, OpKind::kAdd, OpKind::kBroadcast, OpKind::kRelu, OpKind::kTanh,
                        OpKind::kErf, OpKind::kNeg})
    if (options_.mix[static_cast<size_t>(needed)] == 0) return {};
  return projection(x, false);
}

// A second operand with any rank from 1; its batch axes are those of the first, broadcasts, or missing. The first one's
// may be missing too.
ValueId FusionMaker::matrix_product() {
  const ValueId a = operand(OpKind::kMatmul, 1);
  const Extents extents = extents_of(a);
  const size_t rank = extents.size();
  if (rank > 1 && random_.one_in(6)) {
    // By itself, turned around.
    Axes dims;
    for (size_t i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(i));
    std::swap(dims[rank - 1], dims[rank - 2]);
    return matmul(g_, a, permute(g_, a, dims));
  }
  Extents b;
  std::vector<bool> broadcast;
  if (!random_.one_in(4)) {
    const size_t batch = rank < 3 || random_.one_in(2) ? 0 : rank - 2;
    for (size_t i = 0; i < batch; ++i) {
      const bool is_one = random_.one_in(3);
      b.push_back(is_one ? 1 : extents[rank - 2 - batch + i]);
      broadcast.push_back(is_one);
    }
    if (rank < 3 && random_.one_in(4)) b.push_back(random_.between(1, 3)), broadcast.push_back(false);
    b.push_back(extents[rank - 1]);
    b.push_back(random_.between(0, 5));
    broadcast.resize(b.size());
  } else {
    b = {extents[rank - 1]};
    broadcast = {false};
  }
  return matmul(g_, a, new_input(g_[a].dtype, b, broadcast));
}

ValueId FusionMaker::linear_layer() {
  const ValueId x = operand(OpKind::kLinear, 1);
  const Dtype dtype = g_[x].dtype;
  const int64_t features = extents_of(x).back(), results = random_.between(0, 6);
  const bool is_matrix = !random_.one_in(4);
  const ValueId weight = new_input(dtype, is_matrix ? Extents{results, features} : Extents{features});
  ValueId bias;
  if (random_.one_in(2)) bias = new_input(dtype, is_matrix ? Extents{results} : Extents{});
  return linear(g_, x, weight, bias);
}

// Ends of groups in order: constants, some of them equal, the last one before or at the extent.
ValueId FusionMaker::grouped_product() {
  const Dtype dtype = dtype_for(OpKind::kGroupedMm);
  const int64_t m = random_.between(1, 6), k = random_.between(1, 6), n = random_.between(1, 6);
  const int64_t groups = random_.between(1, 3), way = random_.between(0, 2);
  const int64_t extent = way == 0 ? m : way == 1 ? n : k;
  const int64_t step = random_.between(0, extent / groups);
  const int64_t first = random_.between(0, extent - step * (groups - 1));
  const ValueId ends = iota(g_, Scalar(groups), constant_of(g_, Dtype::kInt32, static_cast<double>(first)),
                            constant_of(g_, Dtype::kInt32, static_cast<double>(step)), Dtype::kInt32);
  const ValueId a = new_input(dtype, way == 1 ? Extents{groups, m, k} : Extents{m, k});
  const ValueId b = new_input(dtype, way == 0 ? Extents{groups, k, n} : Extents{k, n});
  return grouped_mm(g_, a, b, ends);
}

// Scales of one number or of one for each row or column, with and without a bias.
ValueId FusionMaker::scaled_product() {
  const ValueId a = operand(OpKind::kScaledMm, 2);
  const Extents extents = extents_of(a);
  if (extents.size() != 2) return {};
  const int64_t columns = random_.between(0, 6);
  const ValueId b = new_input(dtype_for(OpKind::kScaledMm), {extents[1], columns}, {false, false});
  const auto scale = [&](int64_t n) {
    return random_.one_in(2) ? new_input(Dtype::kFloat, {}) : new_input(Dtype::kFloat, {n}, {false});
  };
  constexpr Dtype kResults[] = {Dtype::kHalf, Dtype::kBfloat16, Dtype::kFloat};
  const Dtype dtype = random_.pick(kResults);
  const ValueId scale_a = scale(extents[0]), scale_b = scale(columns);
  const ValueId bias = random_.one_in(2) ? new_input(dtype, {columns}, {false}) : ValueId();
  return scaled_mm(g_, a, b, scale_a, scale_b, {.bias = bias, .dtype = dtype, .name = {}});
}

std::vector<ValueId> FusionMaker::along_axis(OpKind kind) {
  const ValueId x = operand(kind, 1);
  const size_t at = axis_of(x);
  const int64_t axis = written(at, rank_of(g_, x));
  if (kind == OpKind::kArgsort) return {argsort(g_, x, axis, {.descending = random_.one_in(2), .name = {}})};
  if (kind == OpKind::kTopk) {
    const int64_t extent = extents_of(x)[at];
    const Scalar count = index_scalar(random_.between(0, extent));
    const Extremes made = topk(g_, x, count, axis, {.largest = random_.one_in(2), .names = {}});
    return {made.values, made.indices};
  }
  if (kind == OpKind::kCumsum || kind == OpKind::kCumprod) {
    std::optional<Dtype> dtype;
    if (random_.one_in(6) && !is_complex(g_[x].dtype)) dtype = dtype_for(kind);
    return {kind == OpKind::kCumsum ? cumsum(g_, x, axis, dtype) : cumprod(g_, x, axis, dtype)};
  }
  const Extremes made = kind == OpKind::kCummin ? cummin(g_, x, axis) : cummax(g_, x, axis);
  return {made.values, made.indices};
}

std::vector<ValueId> FusionMaker::attention(OpKind kind) {
  if (options_.max_rank < 4) return {};
  const int64_t n = random_.between(1, 2), h = random_.between(1, 2), l = random_.between(0, 5),
                s = random_.between(0, 5), e = random_.between(0, 4), v = random_.between(1, 4);
  ValueId query;
  for (ValueId made : made_)
    if (takes(kind, g_[made].dtype) && rank_of(g_, made) == 4 && random_.one_in(2)) query = made;
  const bool is_made = static_cast<bool>(query);
  if (!is_made) query = new_input(dtype_for(kind), {n, h, l, e});
  const Dtype dtype = g_[query].dtype;
  const Extents q = extents_of(query);
  const ValueId key = new_input(dtype, {q[0], q[1], s, q[3]}), value = new_input(dtype, {q[0], q[1], s, v});
  AttentionOptions options{.causal = random_.one_in(2), .scale = {}, .names = {}};
  if (random_.one_in(3)) options.scale = small_constant(Dtype::kFloat);
  const Attention forward = sdpfa_fwd(g_, query, key, value, options);
  if (kind == OpKind::kSdpfaFwd) return {forward.output, forward.log_sumexp};
  const AttentionGradient made =
      sdpfa_bwd(g_, new_input(dtype, {q[0], q[1], q[2], v}), query, key, value, forward, options);
  return {forward.output, forward.log_sumexp, made.query, made.key, made.value};
}

std::vector<ValueId> FusionMaker::added_rows() {
  const ValueId x = operand(OpKind::kIndexPutAccumulate, 1);
  Extents rows = extents_of(x);
  if (rows[0] == 0) return {};
  rows[0] = random_.between(0, 5);
  const ValueId index = new_input(random_.one_in(2) ? Dtype::kInt32 : Dtype::kInt64, {rows[0]}, {false});
  return {index_put_accumulate(g_, x, index, new_input(g_[x].dtype, rows, std::vector<bool>(rows.size())))};
}

// Along any axis; the index is shorter than the tensor, or as long, on the others.
std::vector<ValueId> FusionMaker::added_elements() {
  const ValueId x = operand(OpKind::kScatterAdd, 1);
  Extents places = extents_of(x);
  const size_t at = axis_of(x);
  if (places[at] == 0) return {};
  for (int64_t& n : places)
    if (n > 1 && random_.one_in(4)) n = random_.between(1, n);
  places[at] = random_.between(0, 5);
  const std::vector<bool> no_broadcasts(places.size());
  const ValueId index = new_input(random_.one_in(2) ? Dtype::kInt32 : Dtype::kInt64, places, no_broadcasts);
  const ValueId source = new_input(g_[x].dtype, places, no_broadcasts);
  return {scatter_add(g_, x, index, source, written(at, places.size()))};
}

}  // namespace fusebox::fuzz
