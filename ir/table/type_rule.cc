#include "ir/table/type_rule.h"

#include <algorithm>

#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

enum Class : uint8_t { kB = 1, kI = 2, kF = 4, kC = 8 };
constexpr uint8_t kReal = kB | kI | kF;
constexpr uint8_t kAny = kReal | kC;

// How the result's dtype follows from the operands' common dtype.
enum class Gives : uint8_t {
  kCommon,     // the common dtype
  kFloating,   // bool and integers become f32
  kTruth,      // bool
  kPart,       // complex becomes its real dtype
  kWide,       // bool and integers become i64
  kPair,       // f32 and f64 become complex
  kAttribute,  // the attribute `as`, or the common dtype without it
};

// How a scalar beside tensors is converted.
enum class Scalars : uint8_t {
  kComputed,   // to the dtype that the op computes in
  kMeeting,    // to the dtype that the operands meet in
  kUnchanged,  // not here: it is a place or a fill, and the op's own rule converts it
};

struct Rule {
  uint8_t accepts = kAny;
  Gives gives = Gives::kCommon;
  Scalars scalars = Scalars::kComputed;
};

// Whether ATen computes the function of complex tensors.
bool is_complex_function(OpKind kind) {
  switch (kind) {
    case FUSEBOX_COMPLEX_FUNCTION_OPS:
      return true;
    default:  // any other: a new row takes no complex numbers until the family has it
      return false;
  }
}

// One line per rule. Complex arithmetic is + − × ÷ and ops that follow from them. ATen computes some elementary
// functions of complex tensors, and the others refuse them. Ops without arithmetic have no rule of their own here: the rules of inference pass their dtypes on.
Rule rule_of(OpKind kind) {
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kSegmentSet:
      return {kAny, Gives::kCommon};
    case OpKind::kAbs:
      return {kAny, Gives::kPart};
    case FUSEBOX_ELEMENTARY_OPS:
    case OpKind::kRsqrt:
    case OpKind::kSqrt:
      return {is_complex_function(kind) ? kAny : kReal, Gives::kFloating};
    case OpKind::kReciprocal:
    case OpKind::kTruediv:
      return {kAny, Gives::kFloating};
    case OpKind::kCeil:
    case OpKind::kFloor:
    case OpKind::kRound:
    case OpKind::kTrunc:
    case OpKind::kRelu:
    case OpKind::kFmod:
    case OpKind::kRemainder:
    case OpKind::kPow:
    case OpKind::kClamp:
    case OpKind::kThreshold:
      return {kI | kF, Gives::kCommon};
    case OpKind::kFrac:
    case OpKind::kNextafter:
    case OpKind::kLerp:
    case OpKind::kWelford:
    case OpKind::kWelfordCombine:
      return {kF, Gives::kCommon};
    case OpKind::kNeg:
    case OpKind::kSub:
    case OpKind::kDiv:
    case OpKind::kAddcmul:
      return {kI | kF | kC, Gives::kCommon};
    case OpKind::kSign:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kMax:
    case OpKind::kMin:
      return {kReal, Gives::kCommon};
    case OpKind::kTriu:
      return {kAny, Gives::kCommon, Scalars::kUnchanged};
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kCat:
      return {kAny, Gives::kCommon};
    case OpKind::kWhere:
      return {kAny, Gives::kCommon, Scalars::kMeeting};
    case OpKind::kLogicalNot:
    case OpKind::kLogicalAnd:
    case OpKind::kLogicalOr:
    case OpKind::kEq:
    case OpKind::kNe:
      return {kAny, Gives::kTruth, Scalars::kMeeting};
    case OpKind::kIsfinite:
    case OpKind::kIsinf:
    case OpKind::kIsnan:
    case OpKind::kIsreal:
      return {kAny, Gives::kTruth};
    case OpKind::kLt:
    case OpKind::kLe:
    case OpKind::kGt:
    case OpKind::kGe:
      return {kReal, Gives::kTruth, Scalars::kMeeting};
    case OpKind::kSignbit:
    case OpKind::kIsneginf:
    case OpKind::kIsposinf:
      return {kReal, Gives::kTruth};
    case OpKind::kBitwiseNot:
    case OpKind::kBitwiseAnd:
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
      return {kB | kI, Gives::kCommon};
    case OpKind::kBitwiseLeftShift:
    case OpKind::kBitwiseRightShift:
    case OpKind::kLogicalRightShift:
    case OpKind::kGcd:
    case OpKind::kMod:
    case OpKind::kFloorDiv:
    case OpKind::kFloorMod:
    case OpKind::kCeilDiv:
      return {kI, Gives::kCommon};
    case OpKind::kReal:
      return {kAny, Gives::kPart};
    case OpKind::kImag:
      return {kC, Gives::kPart};
    case OpKind::kComplex:
      return {kF, Gives::kPair};
    case OpKind::kSum:
    case OpKind::kProd:
    case OpKind::kCumsum:
    case OpKind::kCumprod:
      return {kAny, Gives::kWide};
    case OpKind::kMatmul:
    case OpKind::kLinear:
      return {kF | kC, Gives::kCommon, Scalars::kUnchanged};
    case OpKind::kGroupedMm:
    case FUSEBOX_ATTENTION_OPS:
      return {kF, Gives::kCommon, Scalars::kUnchanged};
    case FUSEBOX_EXTREME_SCAN_OPS:
    case FUSEBOX_SORT_OPS:
      return {kReal, Gives::kCommon, Scalars::kUnchanged};
    case OpKind::kScaledMm:
      return {kF, Gives::kAttribute, Scalars::kUnchanged};
    case FUSEBOX_ADDING_OPS:
      return {kI | kF | kC, Gives::kCommon, Scalars::kUnchanged};
    case OpKind::kCast:
    case OpKind::kFull:
    case OpKind::kIota:
      return {kAny, Gives::kAttribute, Scalars::kUnchanged};
    case FUSEBOX_RANDOM_OPS:
      return {kF, Gives::kAttribute, Scalars::kUnchanged};
    case FUSEBOX_STRUCTURE_OPS:
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_INDEXED_OPS:
    case OpKind::kPad:
    case OpKind::kScatter:
    case FUSEBOX_THREAD_OPS:
    case FUSEBOX_HOST_OPS:
    case FUSEBOX_FACT_OPS:
      return {kAny, Gives::kCommon};
  }
  return {0, Gives::kCommon};
}

// Whether the op only moves elements, so that it takes dtypes that exist as data only.
bool moves_only(OpKind kind) {
  return kind == OpKind::kSet || kind == OpKind::kSegmentSet || kind == OpKind::kCat ||
         (demands(kind, kMetadata | kIndexed) && kind != OpKind::kPad) || kind == OpKind::kWhere ||
         kind == OpKind::kTriu;
}

uint8_t class_of(Dtype d) {
  switch (row_of(d).kind) {
    case DtypeKind::kBoolean:
      return kB;
    case DtypeKind::kSigned:
    case DtypeKind::kUnsigned:
      return kI;
    case DtypeKind::kFloating:
    case DtypeKind::kPacked:
      return kF;
    case DtypeKind::kComplex:
      return kC;
  }
  return kF;
}

std::string place_of(const OperandType& o) { return o.name.empty() ? std::string() : "%" + std::string(o.name); }

[[noreturn]] void refuse(ErrorCode code, OpKind kind, Dtype dtype, std::string_view advice, const std::string& place) {
  throw Error(
      code, std::string(row_of(kind).text) + " does not take " + std::string(text(dtype)) + "; " + std::string(advice),
      place);
}

// ATen computes library ops, and has none of them for floats below 16 bits.
bool is_too_narrow(OpKind kind, Dtype d) { return demands(kind, kLibrary) && is_floating(d) && bits(d) < 16; }

// Products of scaled matrices take 8-bit floats alone.
bool is_scaled(Dtype d) { return d == Dtype::kFloat8E4m3 || d == Dtype::kFloat8E5m2; }

constexpr std::string_view kOnlyMoved =
    "only ops that move elements take this dtype, such as reshape, slice, cat and where";

std::string_view advice_for(OpKind kind, Dtype dtype, uint8_t accepts) {
  if (is_storage_only(dtype)) return kOnlyMoved;  // no cast takes it either
  if (kind == OpKind::kScaledMm) return "cast to an 8-bit float first, or use matmul";
  if (is_too_narrow(kind, dtype)) return "cast to f16, bf16, f32 or f64 first";
  if (is_random(kind)) return "give it f16, bf16, f32 or f64, and cast the result";
  if (kind == OpKind::kNextafter || kind == OpKind::kComplex) return "cast to f32 or f64 first";
  if (accepts == kF || accepts == (kF | kC)) return "cast to a floating dtype first";
  if (accepts == kI) return "cast to an integer dtype first";
  if (accepts == (kB | kI)) return "cast to bool or an integer dtype first";
  if (accepts == kC) return "only complex has these parts";
  if (is_complex(dtype)) return "take its real part, or cast it first";
  return "cast it to a numeric dtype first";
}

// Why the op does not accept operands that meet in this dtype, or nothing.
std::optional<ErrorCode> objection(OpKind kind, Dtype d) {
  const Rule rule = rule_of(kind);
  if (is_storage_only(d)) return moves_only(kind) ? std::nullopt : std::optional(ErrorCode::kUnsupportedDtype);
  if ((rule.accepts & class_of(d)) == 0)
    return is_complex(d) && rule.gives == Gives::kFloating ? ErrorCode::kUnsupportedDtype : ErrorCode::kDtypeMismatch;
  if (kind == OpKind::kNextafter && is_reduced_float(d)) return ErrorCode::kUnsupportedDtype;
  if (kind == OpKind::kComplex && d != Dtype::kFloat && d != Dtype::kDouble) return ErrorCode::kUnsupportedDtype;
  if (is_random(kind) && bits(d) < 16) return ErrorCode::kUnsupportedDtype;  // too few numbers between 0 and 1
  if (kind == OpKind::kScaledMm) return is_scaled(d) ? std::nullopt : std::optional(ErrorCode::kUnsupportedDtype);
  if (is_too_narrow(kind, d)) return ErrorCode::kUnsupportedDtype;
  return std::nullopt;
}

}  // namespace

Dtype common_dtype(std::span<const OperandType> operands, const Defects& defects) {
  std::optional<Dtype> tensors, scalars;
  for (const OperandType& o : operands) {
    std::optional<Dtype>& side = o.is_scalar ? scalars : tensors;
    try {
      side = side ? promote(*side, o.dtype) : o.dtype;
    } catch (Error& e) {
      if (e.place.empty()) e.place = place_of(o);
      throw;
    }
  }
  if (operands.size() > 1 && defects.has(Defect::kPromotionDropped)) return operands[0].dtype;
  if (!tensors) return scalars.value_or(Dtype::kFloat);
  if (!scalars || class_of(*scalars) <= class_of(*tensors)) return *tensors;
  if (is_complex(*scalars) && is_floating(*tensors) && !is_storage_only(*tensors))
    return *tensors == Dtype::kDouble ? Dtype::kComplexDouble : Dtype::kComplexFloat;
  return promote(*tensors, *scalars);
}

std::vector<Dtype> moment_dtypes(OpKind kind, Dtype value) {
  switch (kind) {
    case OpKind::kWelford:
      return {value, value, Dtype::kInt64};
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_INDEXED_OPS:
    case FUSEBOX_PLACING_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(kind, "gives no moments");
}

std::optional<Dtype> scalar_dtype(OpKind kind, std::span<const OperandType> operands, size_t i) {
  const bool any_tensor =
      std::any_of(operands.begin(), operands.end(), [](const OperandType& o) { return !o.is_scalar; });
  if (!operands[i].is_scalar || !any_tensor || operands.size() < 2) return std::nullopt;
  const bool is_where = kind == OpKind::kWhere;
  if (is_where && i == 0) return std::nullopt;
  const Dtype common = common_dtype(is_where ? operands.subspan(1) : operands);
  const Rule rule = rule_of(kind);
  switch (rule.scalars) {
    case Scalars::kUnchanged:
      return std::nullopt;
    case Scalars::kMeeting:
      return common;
    case Scalars::kComputed:
      break;
  }
  return rule.gives == Gives::kFloating && class_of(common) <= kI ? Dtype::kFloat : compute_dtype(common);
}

Dtype random_dtype(const Attrs& attrs) {
  const AttrValue* as = attrs.find(AttrKey::kDtypeAttr);
  return as && std::holds_alternative<Dtype>(*as) ? std::get<Dtype>(*as) : Dtype::kFloat;
}

bool accepts_dtype(OpKind kind, Dtype dtype) { return !objection(kind, dtype); }

bool is_library(OpKind kind, Dtype dtype) {
  return demands(kind, kLibrary) || (is_complex(dtype) && is_complex_function(kind));
}

void check_fill(Dtype tensor, const OperandType& fill) {
  if (is_storage_only(tensor))
    throw Error(ErrorCode::kUnsupportedDtype,
                "pad fills " + std::string(text(tensor)) + " with zeros alone; it has no arithmetic yet",
                place_of(fill));
  const bool fits =
      is_complex(tensor) || (!is_complex(fill.dtype) && (is_floating(tensor) || !is_floating(fill.dtype)));
  if (!fits)
    throw Error(ErrorCode::kDtypeMismatch,
                "pad fills " + std::string(text(tensor)) + " with a value of " + std::string(text(fill.dtype)) +
                    "; cast the value first",
                place_of(fill));
}

Dtype result_dtype(OpKind kind, std::span<const OperandType> operands, const Attrs& attrs, const Defects& defects) {
  const bool is_where = kind == OpKind::kWhere;
  if (is_where && !operands.empty() && operands[0].dtype != Dtype::kBool)
    throw Error(ErrorCode::kDtypeMismatch, "the condition of where must be bool; compare it with ne first",
                place_of(operands[0]));
  const auto computed = is_where && !operands.empty() ? operands.subspan(1) : operands;
  const Dtype common = common_dtype(computed, defects);
  if (const auto code = objection(kind, common)) {
    // Names the operand that has the refused dtype.
    const auto guilty =
        std::find_if(computed.begin(), computed.end(), [&](const OperandType& o) { return o.dtype == common; });
    refuse(*code, kind, common, advice_for(kind, common, rule_of(kind).accepts),
           guilty == computed.end() ? (computed.empty() ? std::string() : place_of(computed[0])) : place_of(*guilty));
  }
  // Scalars are computed in kernels and on the host.
  const bool any_tensor =
      std::any_of(computed.begin(), computed.end(), [](const OperandType& o) { return !o.is_scalar; });
  if (!any_tensor && !demands(kind, kLibrary) && is_library(kind, common))
    refuse(ErrorCode::kUnsupportedDtype, kind, common, "as a scalar; give it a tensor, which full makes",
           computed.empty() ? std::string() : place_of(computed[0]));
  // Nothing converts a dtype that exists as data only, so all operands must have this dtype.
  for (const OperandType& o : computed)
    if (o.dtype != common && (is_storage_only(o.dtype) || is_storage_only(common)))
      refuse(ErrorCode::kUnsupportedDtype, kind, is_storage_only(common) ? common : o.dtype,
             "beside another dtype; give it operands of one dtype", place_of(o));
  const AttrValue* wanted = attrs.find(AttrKey::kDtypeAttr);
  const Dtype* as = wanted ? std::get_if<Dtype>(wanted) : nullptr;
  if (wanted && !as)
    throw Error(ErrorCode::kBadAttribute, "attribute `as` of " + std::string(row_of(kind).text) + " must be a dtype");
  if (as && is_too_narrow(kind, *as)) refuse(ErrorCode::kUnsupportedDtype, kind, *as, "ask for a wider one", {});
  if (as && is_storage_only(*as)) refuse(ErrorCode::kUnsupportedDtype, kind, *as, kOnlyMoved, {});
  switch (rule_of(kind).gives) {
    case Gives::kCommon:
      return common;
    case Gives::kFloating:
      return is_integer(common) || is_boolean(common) ? Dtype::kFloat : common;
    case Gives::kTruth:
      return Dtype::kBool;
    case Gives::kPart:
      return real_of(common);
    case Gives::kWide:
      if (as && is_complex(common) && !is_complex(*as))
        refuse(ErrorCode::kDtypeMismatch, kind, common, "a complex sum has a complex dtype", {});
      if (!as && is_integer(common) && defects.has(Defect::kReductionDtype)) return common;
      return as ? *as : is_integer(common) || is_boolean(common) ? Dtype::kInt64 : common;
    case Gives::kPair:
      return common == Dtype::kFloat ? Dtype::kComplexFloat : Dtype::kComplexDouble;
    case Gives::kAttribute:
      return as ? *as : common;
  }
  return common;
}

}  // namespace fusebox
