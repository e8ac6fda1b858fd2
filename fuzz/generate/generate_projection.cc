// Products of rows with a matrix and what follows them in models: a scale, a bias, an activation, a cast. A library computes
// most of them in one call (ir/infer/product_call.h). Some stand in another order, and some products are read twice.
#include "fuzz/generate/fusion_maker.h"
#include "ir/build/library.h"

namespace fusebox::fuzz {

// Gelu by tanh, or by erf. A library takes a tanh that is fast.
ValueId FusionMaker::written_gelu(ValueId x, bool by_erf) {
  const auto number = [&](double value) { return constant_of(g_, Dtype::kFloat, value); };
  ValueId curve;
  if (by_erf) {
    curve = unary(g_, OpKind::kErf, mul(g_, x, number(0.70710678118654752)));
  } else {
    const ValueId cube = mul(g_, mul(g_, x, x), x);
    const ValueId inner = mul(g_, add(g_, x, mul(g_, cube, number(0.044715))), number(0.7978845608));
    curve = unary(g_, OpKind::kTanh, inner);
    if (!random_.one_in(4)) g_[g_[curve].def].attrs.set_flag(AttrKey::kFast);
  }
  const ValueId sum = add(g_, curve, number(1));
  if (random_.one_in(2)) return mul(g_, mul(g_, x, number(0.5)), sum);
  return mul(g_, x, mul(g_, sum, number(0.5)));
}

// x has rank 2 or more and is f16, bf16 or f32. The last result has x's rank; it is f32 if `is_state`.
std::vector<ValueId> FusionMaker::projection(ValueId x, bool is_state) {
  const Dtype dtype = g_[x].dtype;
  const Extents extents = extents_of(x);
  const int64_t features = extents.back(), columns = random_.between(random_.one_in(8) ? 0 : 1, 9);
  const bool is_linear = random_.one_in(2), has_own_bias = is_linear && random_.one_in(2);
  const ValueId matrix =
      new_input(dtype, is_linear ? Extents{columns, features} : Extents{features, columns}, {false, false});
  const ValueId product = is_linear
                              ? linear(g_, x, matrix, has_own_bias ? new_input(dtype, {columns}, {false}) : ValueId())
                              : matmul(g_, x, matrix);
  const Dtype compute = random_.one_in(4) ? dtype : Dtype::kFloat;
  ValueId y = dtype == compute ? product : cast(g_, product, compute);
  const size_t activation = random_.below(8);
  const bool has_relu = activation < 2, scales_last = random_.one_in(has_relu ? 2 : 4);
  const auto scale = [&] {
    constexpr double kScales[] = {0.5, 0.125, -1.5, 3, 0, 1}, kNegative[] = {-1.5, -2};
    // A negative scale must not change places with the relu before it.
    if (has_relu && scales_last && random_.one_in(2))
      y = mul(g_, y, constant_of(g_, compute, random_.pick(kNegative)));
    else
      y = mul(g_, y, random_.one_in(4) ? drawn_scalar_of(compute) : constant_of(g_, compute, random_.pick(kScales)));
  };
  const auto bias = [&] {
    ValueId b = new_input(dtype, {columns}, {false});
    if (dtype != compute) b = cast(g_, b, compute);
    std::vector<bool> is_new(extents.size(), true);
    is_new.back() = false;
    b = broadcast(g_, b, is_new);
    y = random_.one_in(3) ? add(g_, b, y) : add(g_, y, b);
  };
  if (!scales_last && random_.one_in(3)) scale();
  if (random_.one_in(has_own_bias ? 8 : has_relu && scales_last ? 4 : 2)) bias();
  if (has_relu) y = unary(g_, OpKind::kRelu, y);
  if (activation > 2 && activation < 6 && compute == Dtype::kFloat) y = written_gelu(y, activation == 3);
  if (scales_last) scale();
  std::vector<ValueId> made;
  if (random_.one_in(4)) made.push_back(unary(g_, OpKind::kNeg, product));
  if (dtype != compute && !random_.one_in(4)) y = cast(g_, y, dtype);
  if (is_state && g_[y].dtype != Dtype::kFloat) made.push_back(y), y = cast(g_, y, Dtype::kFloat);
  made.push_back(y);
  return made;
}

}  // namespace fusebox::fuzz
