#include "fuzz/generate/focus.h"

#include <algorithm>

#include "fuzz/generate/focus_situations.h"
#include "fuzz/generate/generate_fusion.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

constexpr uint64_t kOpsOfACase = 2;
// One case does not get neighbours of the table. The stride is prime and does not divide the table's length.
constexpr uint64_t kStride = 7919;

const std::vector<OpFocus>& op_list() {
  static const std::vector<OpFocus> list = [] {
    std::vector<OpFocus> all;
    for (OpKind kind : generated_ops())
      for (const DtypeRow& d : dtype_rows())
        if (d.dtype != Dtype::kIndex && accepts_dtype(kind, d.dtype)) all.push_back({kind, d.dtype});
    return all;
  }();
  return list;
}

// Casts that round or truncate on the way: each integer through each float to each integer.
const std::vector<CastFocus>& cast_list() {
  static const std::vector<CastFocus> list = [] {
    std::vector<Dtype> integers, floats;
    for (const DtypeRow& d : dtype_rows()) {
      if (d.dtype == Dtype::kIndex || is_storage_only(d.dtype)) continue;
      if (is_integer(d.dtype)) integers.push_back(d.dtype);
      if (is_floating(d.dtype)) floats.push_back(d.dtype);
    }
    std::vector<CastFocus> all;
    for (Dtype through : floats)
      for (Dtype from : integers)
        for (Dtype to : integers) all.push_back({from, through, to});
    return all;
  }();
  return list;
}

// The forms of each rewrite rule.
const std::vector<FormFocus>& form_list() {
  static const std::vector<FormFocus> list = [] {
    std::vector<FormFocus> all;
    const auto each = [&](FusionForm form, std::initializer_list<OpKind> kinds) {
      for (OpKind kind : kinds) all.push_back({form, kind, kind});
    };
    each(FusionForm::kNeutralConstant,
         {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kTruediv, OpKind::kBitwiseOr,
          OpKind::kBitwiseXor, OpKind::kBitwiseAnd, OpKind::kBitwiseLeftShift, OpKind::kBitwiseRightShift,
          OpKind::kLogicalRightShift, OpKind::kMinimum, OpKind::kLogicalAnd});
    // Only a float takes zeros of two signs, and only half of the zeros are neutral.
    for (int i = 0; i < 3; ++i) each(FusionForm::kNeutralConstant, {OpKind::kAdd});
    each(FusionForm::kEqualOperands,
         {OpKind::kBitwiseOr, OpKind::kBitwiseAnd, OpKind::kBitwiseXor, OpKind::kLogicalAnd, OpKind::kLogicalOr,
          OpKind::kMinimum, OpKind::kMaximum, OpKind::kSub, OpKind::kWhere});
    each(FusionForm::kExchangedOperands,
         {OpKind::kAdd, OpKind::kMul, OpKind::kEq, OpKind::kNe, OpKind::kLogicalAnd, OpKind::kLogicalOr,
          OpKind::kBitwiseAnd, OpKind::kBitwiseOr, OpKind::kBitwiseXor, OpKind::kSub, OpKind::kMinimum,
          OpKind::kMaximum, OpKind::kLt});
    for (OpKind kind : {OpKind::kNeg, OpKind::kAbs, OpKind::kRelu})
      for (OpKind second : {OpKind::kNeg, OpKind::kAbs, OpKind::kRelu})
        all.push_back({FusionForm::kUnaryPair, kind, second});
    for (OpKind kind : {OpKind::kCeil, OpKind::kFloor, OpKind::kRound, OpKind::kTrunc})
      for (OpKind second : {OpKind::kCeil, OpKind::kFloor, OpKind::kRound, OpKind::kTrunc})
        if (kind != second || kind == OpKind::kFloor) all.push_back({FusionForm::kUnaryPair, kind, second});
    for (OpKind second : {OpKind::kFloor, OpKind::kRound, OpKind::kFrac})
      for (OpKind kind : {OpKind::kFrac, OpKind::kSign}) all.push_back({FusionForm::kUnaryPair, kind, second});
    for (int i = 0; i < 4; ++i) each(FusionForm::kConstantCondition, {OpKind::kWhere});
    each(FusionForm::kMove, {OpKind::kSet, OpKind::kCast, OpKind::kExpand, OpKind::kSlice, OpKind::kPad,
                             OpKind::kPermute, OpKind::kBroadcastInDim, OpKind::kReshape, OpKind::kSqueeze});
    const auto both = [&](FusionForm form, OpKind kind, OpKind second) { all.push_back({form, kind, second}); };
    both(FusionForm::kMovesBack, OpKind::kSqueeze, OpKind::kBroadcast);
    both(FusionForm::kMovesBack, OpKind::kSqueeze, OpKind::kBroadcastInDim);
    both(FusionForm::kMovesBack, OpKind::kBroadcast, OpKind::kSqueeze);
    both(FusionForm::kMovesBack, OpKind::kPermute, OpKind::kPermute);
    both(FusionForm::kMovesBack, OpKind::kReshape, OpKind::kReshape);
    both(FusionForm::kMovesBack, OpKind::kReshape, OpKind::kBroadcast);
    for (OpKind kind : {OpKind::kSlice, OpKind::kPad})
      for (OpKind second : {OpKind::kSlice, OpKind::kPad, OpKind::kCat}) both(FusionForm::kDerivedAxes, kind, second);
    return all;
  }();
  return list;
}

// An xor permutes its domains if the second extent is a power of two and no smaller than the first.
constexpr SwizzleFocus kSwizzles[] = {
    {SwizzleType::kXor, 2, 4},    {SwizzleType::kXor, 3, 4},    {SwizzleType::kXor, 2, 8},
    {SwizzleType::kXor, 5, 8},    {SwizzleType::kXor, 4, 4},    {SwizzleType::kCyclic, 2, 3},
    {SwizzleType::kCyclic, 3, 2}, {SwizzleType::kCyclic, 4, 3}, {SwizzleType::kCyclic, 3, 3}};

constexpr InPlaceFocus kInPlace[] = {
    {.in_vectors = true, .width = 2, .offset = 0}, {.in_vectors = true, .width = 2, .offset = 1},
    {.in_vectors = true, .width = 4, .offset = 2}, {.in_segments = true},
    {.in_vectors = true, .width = 4, .offset = 1}, {.offset = 3, .in_segments = true},
    {.in_vectors = true, .width = 8, .offset = 4}, {.in_vectors = true, .width = 4, .offset = 0, .in_segments = true}};

constexpr SwizzleFocus kFarSwizzles[] = {{SwizzleType::kXor, 4, 4, true},
                                         {SwizzleType::kXor, 2, 8, true},
                                         {SwizzleType::kXor, 8, 8, true},
                                         {SwizzleType::kXor, 3, 4, true}};

void aim_schedule(uint64_t round, Focus& focus) {
  const size_t kinds = enum_texts<TransformKind>().size();
  const uint64_t turn = round / 4;
  switch (round % 4) {
    case 0:
      focus.swizzle = kSwizzles[turn % std::size(kSwizzles)];
      return;
    case 1:
      focus.transforms =
          TransformFocus{static_cast<TransformKind>(turn % kinds), static_cast<TransformKind>(turn / kinds % kinds)};
      return;
    case 2:
      if (turn % 2 == 0)
        focus.far_indices = true;
      else
        focus.swizzle = kFarSwizzles[turn / 2 % std::size(kFarSwizzles)];
      return;
    default:
      focus.in_place = kInPlace[turn % std::size(kInPlace)];
  }
}

}  // namespace

std::vector<FormFocus> all_forms() {
  std::vector<FormFocus> all;
  for (const FormFocus& f : form_list())
    if (std::find(all.begin(), all.end(), f) == all.end()) all.push_back(f);
  return all;
}

std::string text(const FormFocus& form) {
  const std::string kind(row_of(form.kind).text), second(row_of(form.second).text);
  switch (form.form) {
    case FusionForm::kNeutralConstant:
      return kind + " of a constant that changes nothing";
    case FusionForm::kEqualOperands:
      return kind + " of equal operands";
    case FusionForm::kExchangedOperands:
      return kind + " of exchanged operands";
    case FusionForm::kUnaryPair:
      return kind + " of " + second;
    case FusionForm::kConstantCondition:
      return kind + " of a constant condition";
    case FusionForm::kMove:
      return kind + " that moves nothing";
    case FusionForm::kMovesBack:
      return kind + " that undoes " + second;
    case FusionForm::kDerivedAxes:
      return kind + " of a computed extent, of " + second;
  }
  return {};
}

Focus focus_of(uint64_t seed) {
  Focus focus;
  const uint64_t round = seed / 4;
  if (seed % 4 == 1) {
    const auto& ops = op_list();
    for (uint64_t i = 0; i < kOpsOfACase; ++i)
      focus.ops.push_back(ops[(round * kOpsOfACase + i) * kStride % ops.size()]);
    const uint64_t turn = round / 3 * kStride;
    if (round % 3 == 0)
      focus.casts = cast_list()[turn % cast_list().size()];
    else if (round % 3 == 1)
      focus.form = form_list()[turn % form_list().size()];
    else
      for (uint64_t i = 0; i < kOpsOfACase; ++i)
        focus.arguments.push_back(argument_ranges()[(turn * kOpsOfACase + i * kStride) % argument_ranges().size()]);
  } else if (seed % 4 == 3) {
    aim_schedule(round, focus);
  } else if (seed % 8 == 2) {
    aim_situation(seed / 8, focus);
  } else if (seed % 8 == 6) {
    focus.rare = static_cast<RareFocus>(seed / 8 % kRareFoci);
    if (focus.rare == RareFocus::kWrappingConstants) focus.rewrite = "fold_constants";
    if (focus.rare == RareFocus::kTimesZero) focus.rewrite = "identity_ops";
    if (focus.rare == RareFocus::kGatheredOp) focus.rewrite = "early_gathers";
    if (focus.rare == RareFocus::kFewMoments) focus.rewrite = "two_pass_moments";
    if (focus.rare == RareFocus::kStoredOverSegments) focus.segments = 2 + seed / 8 / kRareFoci % 2;
    if (focus.rare == RareFocus::kStoredOverGathered && seed / 8 / kRareFoci % 2 == 0) focus.segments = 2;
  }
  return focus;
}

}  // namespace fusebox::fuzz
