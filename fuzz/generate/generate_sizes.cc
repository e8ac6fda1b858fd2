// Sizes computed by any ops on scalars: arithmetic in other dtypes gives a number, and one more op turns it into the
// wanted size.
#include <algorithm>

#include "fuzz/base/error_form.h"
#include "fuzz/generate/constants.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

// Ops of one to three operands that host programs can compute.
const std::vector<OpKind>& scalar_ops() {
  static const std::vector<OpKind> list = [] {
    std::vector<OpKind> all;
    for (const OpRow& row : op_rows())
      if (row.at(Level::kMath) && row.at(Level::kHost) && demands(row.kind, kPointwise) && row.format->results == 1 &&
          row.kind != OpKind::kCast && row.format->all().size() <= 3)
        all.push_back(row.kind);
    return all;
  }();
  return list;
}

Dtype any_number(RandomSource& random) {
  for (;;) {
    const Dtype dtype = static_cast<Dtype>(random.below(dtype_rows().size()));
    if (!is_storage_only(dtype) || random.exhausted()) return dtype;
  }
}

// True if index arithmetic overflows in a sum, difference, product or negation, which no index may do.
bool leaves_64_bits(const Graph& g, const Op& op, const Bindings& sizes) {
  const bool computes =
      op.kind == OpKind::kAdd || op.kind == OpKind::kSub || op.kind == OpKind::kMul || op.kind == OpKind::kNeg;
  if (!computes || g[op.results[0]].dtype != Dtype::kIndex) return false;
  __int128 x[2] = {0, 0};
  for (size_t i = 0; i < op.operands.size() && i < 2; ++i) {
    const auto number = evaluate_integer(g, op.operands[i], sizes);
    if (!number) return false;
    x[i] = *number;
  }
  const __int128 exact = op.kind == OpKind::kAdd   ? x[0] + x[1]
                         : op.kind == OpKind::kSub ? x[0] - x[1]
                         : op.kind == OpKind::kMul ? x[0] * x[1]
                                                   : -x[0];
  return exact != static_cast<int64_t>(exact);
}

}  // namespace

ValueId FusionMaker::drawn_scalar() {
  const size_t way = random_.below(6);
  if (way < 2 && !symbols_.empty()) return random_.pick(symbols_).value;
  if (way == 2) return index_input(random_.between(-3, 9));
  const Dtype dtype = any_number(random_);
  if (dtype == Dtype::kIndex || is_storage_only(dtype)) return constant_index(g_, random_.between(-3, 9));
  if (way > 3) return constant(g_, dtype, draw_constant(random_, dtype));
  return drawn_scalar_of(dtype);
}

// An input that is a number.
ValueId FusionMaker::drawn_scalar_of(Dtype dtype) {
  const ValueId v = input_scalar(g_, "", dtype);
  sizes_.resize(g_.values.size());
  sizes_[v.index] = draw_small_constant(random_, dtype);
  return v;
}

// A random op on x and other scalars; they may also be x.
ValueId FusionMaker::any_scalar_op(ValueId x) {
  if (random_.one_in(6)) {
    const Dtype to = any_number(random_);
    return is_storage_only(to) ? x : cast(g_, x, to);
  }
  const OpKind kind = random_.pick(scalar_ops());
  std::vector<ValueId> operands(row_of(kind).format->all().size(), x);
  for (ValueId& v : operands)
    if (operands.size() > 1 && !random_.one_in(operands.size())) v = random_.one_in(6) ? x : drawn_scalar();
  return pointwise(g_, kind, operands);
}

// Adds one op whose result is the value.
ValueId FusionMaker::moved_to(ValueId index, int64_t value) {
  constexpr int64_t kFar = int64_t{1} << 40;
  auto number = evaluate_integer(g_, index, sizes_);
  if (!number) return {};
  if (*number < -kFar || *number > kFar) {
    index = pointwise(g_, OpKind::kFloorMod, {index, constant_index(g_, random_.between(2, 9))});
    sizes_.resize(g_.values.size());
    number = evaluate_integer(g_, index, sizes_);
    if (!number) return {};
  }
  if (*number == value && !random_.one_in(4)) return index;
  const auto with = [&](OpKind kind, int64_t by) {
    return pointwise(g_, kind, {index, random_.one_in(3) ? index_input(by) : constant_index(g_, by)});
  };
  switch (random_.below(4)) {
    case 0:
      return with(*number >= value ? OpKind::kMinimum : OpKind::kMaximum, value);
    case 1:
      return with(OpKind::kSub, *number - value);
    case 2:
      return where(g_, pointwise(g_, OpKind::kEq, {index, constant_index(g_, *number)}), index_input(value), index);
    default:
      return with(OpKind::kAdd, value - *number);
  }
}

Scalar FusionMaker::computed_index(int64_t value) {
  const Mark before = mark();
  try {
    ValueId x = drawn_scalar();
    for (size_t count = 1 + random_.below(3); count > 0; --count) x = any_scalar_op(x);
    if (g_[x].dtype != Dtype::kIndex) x = cast(g_, x, Dtype::kIndex);
    sizes_.resize(g_.values.size());
    const ValueId moved = moved_to(x, value);
    sizes_.resize(g_.values.size());
    const bool wraps = std::any_of(g_.ops.begin() + static_cast<std::ptrdiff_t>(before.ops), g_.ops.end(),
                                   [&](const Op& op) { return leaves_64_bits(g_, op, sizes_); });
    if (moved && !wraps && evaluate_integer(g_, moved, sizes_) == value) return Scalar(moved);
  } catch (const Error& e) {
    expect_refusal(e);
  }
  // Not every dtype has every op, and not every op can be evaluated.
  take_back(before);
  return Scalar(value);
}

}  // namespace fusebox::fuzz
