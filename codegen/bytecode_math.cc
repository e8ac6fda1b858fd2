#include "codegen/bytecode_math.h"

#include <algorithm>

#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {

MathClass math_class(OpKind kind) {
  switch (kind) {
    case FUSEBOX_COPY_OPS:
      return MathClass::kMove;
    case OpKind::kCast:
      return MathClass::kCast;
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kFmod:
    case FUSEBOX_WHOLE_OPS:
    case OpKind::kRemainder:
    case OpKind::kNextafter:
    case OpKind::kPow:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case FUSEBOX_SHIFT_OPS:
    case OpKind::kNeg:
    case OpKind::kRelu:
    case FUSEBOX_ROUNDING_OPS:
    case OpKind::kFrac:
    case OpKind::kSign:
    case OpKind::kLerp:
    case OpKind::kClamp:
    case OpKind::kThreshold:
    case OpKind::kAddcmul:
      return MathClass::kArithmetic;
    case FUSEBOX_ELEMENTARY_OPS:
    case OpKind::kReciprocal:
    case OpKind::kRsqrt:
    case OpKind::kSqrt:
    case OpKind::kTruediv:
      return MathClass::kFloating;
    case FUSEBOX_BITWISE_OPS:
      return MathClass::kBitwise;
    case FUSEBOX_COMPARISON_OPS:
      return MathClass::kCompare;
    case FUSEBOX_LOGICAL_OPS:
      return MathClass::kLogical;
    case FUSEBOX_TEST_OPS:
      return MathClass::kTest;
    case OpKind::kWhere:
      return MathClass::kSelect;
    case OpKind::kAbs:
    case OpKind::kReal:
    case OpKind::kImag:
      return MathClass::kPart;
    case OpKind::kComplex:
      return MathClass::kPair;
    case OpKind::kWelfordCombine:
      return MathClass::kWelford;
    case FUSEBOX_STRUCTURE_OPS:
    case FUSEBOX_TENSOR_OPS:
    case FUSEBOX_THREAD_OPS:
    case FUSEBOX_HOST_OPS:
    case FUSEBOX_FACT_OPS:
      return MathClass::kNotMath;
  }
  return MathClass::kNotMath;
}

namespace {

// The common dtype of the operands. The condition of a `where` takes no part.
Dtype common_operand_dtype(OpKind kind, std::span<const Dtype> operands) {
  if (kind == OpKind::kWhere) operands = operands.subspan(1);
  Dtype common = operands[0];
  for (const Dtype d : operands.subspan(1)) common = promote(common, d);
  return common;
}

}  // namespace

MathPlan math_plan(OpKind kind, std::span<const Dtype> operands, Dtype result) {
  MathPlan plan{math_class(kind), result, result};
  if (plan.kind == MathClass::kNotMath || plan.kind == MathClass::kMove || plan.kind == MathClass::kCast) return plan;
  if (plan.kind == MathClass::kLogical) {
    if (std::any_of(operands.begin(), operands.end(), is_storage_only))
      throw Error(ErrorCode::kUnsupportedDtype,
                  std::string(row_of(kind).text) + " has no arithmetic for dtypes that are data only");
    return {plan.kind, Dtype::kBool, Dtype::kBool};
  }
  const Dtype common = common_operand_dtype(kind, operands);
  if (is_storage_only(common) || is_storage_only(result)) {
    if (plan.kind == MathClass::kSelect && common == result) return {plan.kind, common, common};
    throw Error(ErrorCode::kUnsupportedDtype, std::string(row_of(kind).text) + " has no arithmetic for " +
                                                  std::string(text(common)) + "; cast it first");
  }
  plan.compute = compute_dtype(common);
  // An index result stays checked as an index, even if its operands meet as int64.
  if (result == Dtype::kIndex && plan.compute == Dtype::kInt64) plan.compute = Dtype::kIndex;
  const bool is_exact_class = is_integer(common) || is_boolean(common);
  switch (plan.kind) {
    case MathClass::kFloating:
      if (is_exact_class)
        plan.compute = is_floating(result) || is_complex(result) ? compute_dtype(result) : Dtype::kFloat;
      plan.native = plan.compute;
      break;
    case MathClass::kArithmetic:
    case MathClass::kWelford:
      if (is_boolean(common)) plan.compute = Dtype::kInt32;
      plan.native = plan.compute;
      break;
    case MathClass::kBitwise:
    case MathClass::kSelect:
      plan.native = plan.compute;
      break;
    case MathClass::kPart:
      if (is_boolean(common)) plan.compute = Dtype::kInt32;
      plan.native = real_of(plan.compute);
      break;
    case MathClass::kCompare:
    case MathClass::kTest:
      plan.native = Dtype::kBool;
      break;
    case MathClass::kPair:
      plan.native = plan.compute == Dtype::kDouble ? Dtype::kComplexDouble : Dtype::kComplexFloat;
      break;
    case MathClass::kNotMath:
    case MathClass::kMove:
    case MathClass::kCast:
    case MathClass::kLogical:
      break;
  }
  return plan;
}

}  // namespace fusebox
