// Scalars of a generated fusion: constants and ops on constants.
#include <algorithm>
#include <iterator>

#include "fuzz/generate/constants.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/scalar/numeric.h"

namespace fusebox::fuzz {
namespace {

// Both dtypes are of the same class, so one range lies within the other.
bool is_narrower(Dtype narrow, Dtype wide) {
  const bool same = (is_integer(narrow) && is_integer(wide)) || (is_floating(narrow) && is_floating(wide)) ||
                    (is_complex(narrow) && is_complex(wide));
  return same && !is_storage_only(narrow) && bits(narrow) < bits(wide);
}

}  // namespace

ValueId FusionMaker::scalar_constant(Dtype dtype) { return constant(g_, dtype, draw_constant(random_, dtype)); }

// A constant outside the range of the tensor's dtype is refused, so draw it in that dtype.
ValueId FusionMaker::scalar_constant(Dtype dtype, Dtype beside) {
  if (!is_narrower(beside, dtype)) return scalar_constant(dtype);
  const ConstantBits value = draw_constant(random_, beside);
  const bool is_negative = is_signed(beside) && !is_signed(dtype) && to_int64(beside, value) < 0;
  return is_negative ? small_constant(dtype) : constant(g_, dtype, convert(beside, value, dtype));
}

ValueId FusionMaker::small_constant(Dtype dtype) { return constant(g_, dtype, draw_small_constant(random_, dtype)); }

ValueId FusionMaker::neutral_constant(Dtype dtype) {
  constexpr double kNeutral[] = {1, 0, -0.0};
  if (random_.one_in(4)) return scalar_constant(dtype);
  return constant(g_, dtype, fuzz::small_constant(dtype, random_.pick(kNeutral)));
}

ValueId FusionMaker::scalar_operand(Dtype dtype, Dtype beside) {
  // Folding 64-bit integers can give values that no float holds.
  const bool is_wide = is_integer(dtype) && bits(dtype) == 64;
  return random_.one_in(is_wide ? 2 : 4) && !is_storage_only(dtype) ? folded_scalar(dtype, beside)
                                                                    : scalar_constant(dtype, beside);
}

ValueId FusionMaker::folded_scalar(Dtype dtype, Dtype beside) {
  constexpr OpKind kBinary[] = {OpKind::kAdd,
                                OpKind::kMul,
                                OpKind::kSub,
                                OpKind::kDiv,
                                OpKind::kRemainder,
                                OpKind::kFmod,
                                OpKind::kMinimum,
                                OpKind::kMaximum,
                                OpKind::kPow,
                                OpKind::kBitwiseAnd,
                                OpKind::kBitwiseXor,
                                OpKind::kBitwiseLeftShift,
                                OpKind::kBitwiseRightShift,
                                OpKind::kLogicalRightShift,
                                OpKind::kGcd};
  constexpr OpKind kUnary[] = {OpKind::kNeg,   OpKind::kAbs,  OpKind::kBitwiseNot, OpKind::kSign,
                               OpKind::kFloor, OpKind::kRelu, OpKind::kTrunc,      OpKind::kRound};
  const auto one_of = [&](const auto& kinds) {
    std::vector<OpKind> fitting;
    std::copy_if(std::begin(kinds), std::end(kinds), std::back_inserter(fitting),
                 [&](OpKind kind) { return takes(kind, dtype); });
    return fitting.empty() ? OpKind::kSet : random_.pick(fitting);
  };
  folds_ = true;
  ValueId v = scalar_constant(dtype, beside);
  // A 64-bit sum beyond the integers that doubles hold: a large odd number plus a small one.
  if (is_integer(dtype) && bits(dtype) == 64 && !is_narrower(beside, dtype) && random_.one_in(2)) {
    const uint64_t power = uint64_t{1} << random_.between(53, 62), large = power + (random_.next() >> 12 | 1);
    const ValueId small = constant(g_, dtype, {1 + random_.below(3), 0});
    v = constant(g_, dtype, {large, 0});
    v = random_.one_in(2) ? add(g_, v, small) : sub(g_, v, small);
    if (random_.one_in(2)) return v;
  }
  for (size_t ops = 1 + random_.below(3); ops > 0; --ops) {
    const size_t way = random_.below(8);
    if (way == 0) {
      Dtype through = static_cast<Dtype>(random_.below(dtype_rows().size()));
      if (is_storage_only(through) || through == Dtype::kIndex) through = Dtype::kFloat;
      v = cast(g_, cast(g_, v, through), dtype);
      continue;
    }
    const OpKind kind = way < 3 ? one_of(kUnary) : one_of(kBinary);
    if (row_of(kind).format->all().size() == 1)
      v = unary(g_, kind, v);
    else
      v = pointwise(g_, kind, {v, random_.one_in(6) ? input_scalar(g_, "", dtype) : scalar_constant(dtype, beside)});
  }
  return v;
}

}  // namespace fusebox::fuzz
