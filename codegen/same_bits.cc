#include "codegen/same_bits.h"

#include "ir/table/families.h"

namespace fusebox {

bool gives_same_bits(OpKind kind, const Attrs& attrs) { return !attrs.flag(AttrKey::kFast) && gives_same_bits(kind); }

bool gives_same_bits(OpKind kind) {
  switch (kind) {
    case FUSEBOX_CHOICE_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
      return true;
    // IEEE rounds these, or no rounding takes place.
    case OpKind::kAbs:
    case OpKind::kAdd:
    case OpKind::kAddcmul:
    case OpKind::kDiv:
    case OpKind::kFmod:
    case OpKind::kFrac:
    case OpKind::kLerp:
    case OpKind::kMul:
    case OpKind::kNeg:
    case OpKind::kReciprocal:
    case OpKind::kRelu:
    case OpKind::kRemainder:
    case OpKind::kRsqrt:
    case OpKind::kSign:
    case OpKind::kSqrt:
    case OpKind::kSub:
    case OpKind::kThreshold:
    case OpKind::kTruediv:
      return true;
    // runtime/exact_*.cuh
    case FUSEBOX_EXACT_UNARY_OPS:
    case OpKind::kAtan2:
    case OpKind::kPow:
      return true;
    // Each executor has a library of its own.
    case FUSEBOX_BOUNDED_UNARY_OPS:
      return false;
    // Either of -0 and 0 may be the result.
    case OpKind::kClamp:
    case OpKind::kMaximum:
    case OpKind::kMinimum:
      return false;
    case FUSEBOX_PART_OPS:
    case FUSEBOX_TEST_OPS:
      return true;
    // Narrow dtypes have a function of their own there.
    case OpKind::kNextafter:
      return false;
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  not_in_family(kind, "is no scalar op");
}

}  // namespace fusebox
