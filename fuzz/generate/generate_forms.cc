// Builds what a case is aimed at: ops that rewrite rules look for, functions with arguments near their branches, index
// scalars and layouts at the limits of 32 bits.
#include <algorithm>

#include "fuzz/generate/constants.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/scalar/numeric.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {

bool FusionMaker::aim(GeneratedFusion& result, Neighbour neighbour, OpKind kind) {
  if (options_.mix[static_cast<size_t>(kind)] == 0) return false;
  neighbour_ = neighbour;
  ++result.attempts;
  const bool is_accepted = attempt(kind);
  result.accepted += is_accepted;
  neighbour_ = Neighbour::kNone;
  wanted_.reset();
  return is_accepted;
}

void FusionMaker::begin_focus(GeneratedFusion& result) {
  const Focus& focus = options_.focus;
  if (focus.swizzle && focus.swizzle->is_far) begin_far_swizzle(*focus.swizzle);
  for (const OpFocus& o : focus.ops) {
    wanted_ = o.dtype;
    aim(result, Neighbour::kNone, o.kind);
  }
  if (focus.casts) {
    casts_ = *focus.casts;
    aim(result, Neighbour::kCasts, OpKind::kCast);
  }
  if (focus.form && options_.mix[static_cast<size_t>(focus.form->second)] > 0) {
    form_ = *focus.form;
    // A rule treats most dtypes alike but not all, so try several.
    for (int tries = 0; tries < 3 && !aim(result, Neighbour::kForm, form_.kind); ++tries) continue;
  }
  for (const ArgumentRange& range : focus.arguments) {
    arguments_ = range;
    aim(result, Neighbour::kArguments, range.kind);
  }
  constexpr OpKind kReadIndices[] = {OpKind::kSlice, OpKind::kPad, OpKind::kSelect, OpKind::kIota, OpKind::kExpand};
  if (focus.far_indices)
    for (int i = 0; i < 2; ++i) aim(result, Neighbour::kNone, random_.pick(kReadIndices));
}

// A kernel of one op reads the input, through the swizzled domains only.
void FusionMaker::begin_far_swizzle(const SwizzleFocus& swizzle) {
  InputOptions layout{.contiguity = {Contiguity::kTrue, Contiguity::kFalse}, .allocation_order = {1, 0}};
  made_.push_back(input(g_, "", Dtype::kInt8, {Scalar(swizzle.first), Scalar(swizzle.second)}, layout));
  made_.push_back(unary(g_, random_.one_in(2) ? OpKind::kNeg : OpKind::kSet, made_.back()));
}

// A small index scalar computed from one near 2^30, 2^31 or 2^32: arithmetic in 32 bits gives another value.
Scalar FusionMaker::far_index(int64_t value) {
  constexpr int kPowers[] = {30, 31, 31, 32};
  const int64_t far = (int64_t{1} << random_.pick(kPowers)) + random_.between(-2, 2);
  const auto of = [&](OpKind kind, int64_t a, int64_t b) {
    const bool is_input = random_.one_in(2);
    const ValueId x = is_input ? index_input(a) : constant_index(g_, a);
    const ValueId y = !is_input || random_.one_in(2) ? index_input(b) : constant_index(g_, b);
    return Scalar(pointwise(g_, kind, {x, y}));
  };
  // Extents are sums and products of sums. A product of two large numbers would overflow 64 bits, so stay below this.
  constexpr int64_t kInSums = int64_t{1} << 30;
  const size_t way = random_.below(has_far_sum_ ? 4 : 6);
  has_far_sum_ |= way >= 4;
  switch (way) {
    case 0:
      return of(OpKind::kFloorDiv, far * value + random_.between(0, 2), far);
    case 1:
      return value < 0 ? Scalar(value) : of(OpKind::kFloorMod, far * random_.between(0, 3) + value, far);
    case 2:
      return of(OpKind::kMinimum, far, value);
    case 3:
      return of(OpKind::kMaximum, value, -far);
    case 4:
      return of(OpKind::kSub, kInSums + value, kInSums);
    default:
      return of(OpKind::kAdd, value - kInSums, kInSums);
  }
}

// A function of an input with values in the range. With two operands, both take boundary values.
std::vector<ValueId> FusionMaker::function_of(const ArgumentRange& range) {
  if (range.is_pair) {
    const Extents extents = {random_.between(16, 24), 32};
    const ValueId x = new_input(range.dtype, extents), y = input_beside(x, range.dtype, false);
    for (ValueId v : {x, y}) ranges_.push_back({.input = v, .is_boundary = true});
    return {pointwise(g_, range.kind, {x, y})};
  }
  const ValueId x = new_input(range.dtype, {random_.between(33, 128)});
  ranges_.push_back({x, range.low, range.high});
  return {unary(g_, range.kind, x)};
}

// The op of a tensor and its neutral constant, on either side; sometimes a constant that is nearly neutral.
ValueId FusionMaker::neutral_form(OpKind kind) {
  const ValueId x = operand(kind);
  const Dtype dtype = g_[x].dtype;
  const auto number = [&](double value) { return constant(g_, dtype, fuzz::small_constant(dtype, value)); };
  const auto neutral = [&] {
    switch (kind) {
      case OpKind::kMul:
      case OpKind::kDiv:
      case OpKind::kTruediv:
      case OpKind::kLogicalAnd:
        return number(1);
      case OpKind::kBitwiseAnd:
        return constant(g_, dtype, canonical_bits(dtype, {~uint64_t{0}, 0}));
      case OpKind::kMinimum:
        return constant(g_, dtype, from_double(dtype, has_infinity(dtype) ? HUGE_VAL : 127));
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kBitwiseOr:
      case OpKind::kBitwiseXor:
      case FUSEBOX_SHIFT_OPS:
        return number(random_.one_in(2) ? -0.0 : 0.0);
      default:  // any other: no form with a constant is drawn of it
        not_in_family(kind, "has no neutral constant");
    }
  };
  // A zero of one sign changes zeros of the other sign.
  const bool has_zeros = is_floating(dtype) && (kind == OpKind::kAdd || kind == OpKind::kSub) && !random_.one_in(4);
  if (has_zeros && g_[g_[x].def].kind == OpKind::kInput) ranges_.push_back({.input = x, .is_boundary = true});
  const ValueId c = random_.one_in(8) ? neutral_constant(dtype) : neutral();
  return random_.one_in(3) ? pointwise(g_, kind, {c, x}) : pointwise(g_, kind, {x, c});
}

// An op that moves elements, with attributes that leave all of them in place.
ValueId FusionMaker::still_move(OpKind kind) {
  const ValueId x = operand(kind, 1);
  const size_t rank = rank_of(g_, x);
  Shape sizes;
  Axes axes;
  for (size_t i = 0; i < rank; ++i) {
    sizes.push_back(size_of(g_, x, static_cast<int64_t>(i)));
    axes.push_back(static_cast<int64_t>(i));
  }
  switch (kind) {
    case OpKind::kCast:
      return cast(g_, x, g_[x].dtype);
    case OpKind::kExpand:
      return expand(g_, x, random_.one_in(2) ? sizes : Shape(rank, Scalar(-1)));
    case OpKind::kSlice:
      return slice(g_, x, Shape(rank, Scalar(0)), sizes);
    case OpKind::kPad:
      return pad(g_, x, Shape(2 * rank, Scalar(0)), random_.one_in(2) ? small_constant(g_[x].dtype) : ValueId());
    case OpKind::kPermute:
      return permute(g_, x, axes);
    case OpKind::kBroadcastInDim:
      return broadcast_in_dim(g_, x, sizes, axes);
    case OpKind::kReshape:
      return reshape(g_, x, sizes);
    case OpKind::kSqueeze:
      return squeeze(g_, x, {});
    case OpKind::kSet:
      return unary(g_, OpKind::kSet, x);
    default:  // any other: no form of a move is drawn of it
      not_in_family(kind, "cannot leave all elements in place");
  }
}

// The first move, then the second, which restores what the first read; sometimes along another axis.
ValueId FusionMaker::moves_back(OpKind second, OpKind first) {
  const ValueId x = operand(first, 1);
  const size_t rank = rank_of(g_, x), at = random_.below(rank + 1);
  Shape sizes;
  for (size_t i = 0; i < rank; ++i) sizes.push_back(size_of(g_, x, static_cast<int64_t>(i)));
  std::vector<bool> mask(rank + 1);
  mask[at] = true;
  const Axes added = {static_cast<int64_t>(at)};
  switch (first) {
    case OpKind::kBroadcast: {
      const ValueId y = broadcast(g_, x, mask);
      return second == OpKind::kReshape ? reshape(g_, y, sizes) : squeeze(g_, y, added);
    }
    case OpKind::kBroadcastInDim: {
      Axes dims;
      for (size_t i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(i < at ? i : i + 1));
      Shape to = sizes;
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(at), Scalar(1));
      return squeeze(g_, broadcast_in_dim(g_, x, to, dims), added);
    }
    case OpKind::kSqueeze: {
      // At the same place, or at a random one.
      const ValueId y = squeeze(g_, broadcast(g_, x, mask), added);
      std::vector<bool> again(rank + 1);
      again[random_.one_in(2) ? at : random_.below(rank + 1)] = true;
      return broadcast(g_, y, again);
    }
    case OpKind::kReshape:
      return reshape(g_, reshape(g_, x, {-1}), sizes);
    case OpKind::kPermute: {
      const Axes dims = permutation(rank);
      Axes back(rank);
      for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
      return permute(g_, permute(g_, x, dims), random_.one_in(4) ? dims : back);
    }
    default:  // any other: no form of two moves is drawn of it
      not_in_family(first, "is not moved back");
  }
}

// A move that starts at the first element, with extents computed from symbols: only the extents can tell that it
// changes something.
ValueId FusionMaker::derived(OpKind kind, ValueId x) {
  const Extents extents = extents_of(x);
  const size_t rank = extents.size(), at = axis_of(x);
  switch (kind) {
    case OpKind::kPad: {
      Shape widths(2 * rank, Scalar(0));
      widths[2 * (rank - 1 - at) + 1] = Scalar(index_input(random_.between(0, 2)));
      return pad(g_, x, widths);
    }
    case OpKind::kCat:
      return cat(g_, {x, x}, static_cast<int64_t>(at));
    case OpKind::kSlice: {
      Shape stops;
      for (size_t i = 0; i < rank; ++i) stops.push_back(size_of(g_, x, static_cast<int64_t>(i)));
      stops[at] = Scalar(index_input(std::max<int64_t>(extents[at] - random_.between(0, 2), 0)));
      return slice(g_, x, Shape(rank, Scalar(0)), stops);
    }
    default:  // any other: no form with computed extents is drawn of it
      not_in_family(kind, "computes no extent");
  }
}

std::vector<ValueId> FusionMaker::form_of(const FormFocus& form) {
  const OpKind kind = form.kind;
  const auto made = [&]() -> ValueId {
    switch (form.form) {
      case FusionForm::kNeutralConstant:
        return neutral_form(kind);
      case FusionForm::kEqualOperands: {
        const ValueId x = operand(kind);
        return kind == OpKind::kWhere ? where(g_, condition(x), x, x) : pointwise(g_, kind, {x, x});
      }
      case FusionForm::kExchangedOperands: {
        const ValueId x = operand(kind);
        // Zeros of both signs meet at one place, and so do NaN of both signs: min and max return one of the two.
        const bool is_choice = kind == OpKind::kMinimum || kind == OpKind::kMaximum;
        const bool is_opposite = is_choice && takes(OpKind::kNeg, g_[x].dtype) && !random_.one_in(4);
        if (is_opposite && g_[g_[x].def].kind == OpKind::kInput) ranges_.push_back({.input = x, .is_boundary = true});
        const ValueId y = is_opposite ? unary(g_, OpKind::kNeg, x) : input_beside(x, g_[x].dtype, false);
        made_.push_back(pointwise(g_, kind, {x, y}));
        return random_.one_in(4) ? pointwise(g_, kind, {x, y}) : pointwise(g_, kind, {y, x});
      }
      case FusionForm::kUnaryPair: {
        const ValueId x = operand(kind);
        return takes(form.second, g_[x].dtype) ? unary(g_, kind, unary(g_, form.second, x)) : ValueId();
      }
      case FusionForm::kConstantCondition: {
        const ValueId x = operand(kind), y = input_beside(x, g_[x].dtype, random_.one_in(4));
        return where(g_, constant(g_, Dtype::kBool, constant_bits(Dtype::kBool, random_.one_in(2))), x, y);
      }
      case FusionForm::kMove:
        return still_move(kind);
      case FusionForm::kMovesBack:
        return moves_back(kind, form.second);
      case FusionForm::kDerivedAxes:
        return derived(kind, derived(form.second, operand(kind, 1)));
    }
    return {};
  }();
  if (!made) return {};
  // Rewrites never replace an output, so another op reads the result.
  const bool is_number = takes(OpKind::kNeg, g_[made].dtype);
  return {made, unary(g_, is_number ? OpKind::kNeg : OpKind::kSet, made)};
}

}  // namespace fusebox::fuzz
