#include "codegen/same_bits.h"

#include "ir/table/families.h"

namespace fusebox {

bool gives_same_bits(OpKind kind) {
  switch (kind) {
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kWhere:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_WHOLE_OPS:
    case FUSEBOX_SHIFT_OPS:
    case FUSEBOX_BITWISE_OPS:
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
    case OpKind::kRemainder:
    case OpKind::kRsqrt:
    case OpKind::kSign:
    case OpKind::kSqrt:
    case OpKind::kSub:
    case OpKind::kThreshold:
    case OpKind::kTruediv:
      return true;
    // runtime/exact_*.cuh
    case OpKind::kAcos:
    case OpKind::kAcosh:
    case OpKind::kAsin:
    case OpKind::kAsinh:
    case OpKind::kAtan:
    case OpKind::kAtan2:
    case OpKind::kAtanh:
    case OpKind::kCos:
    case OpKind::kCosh:
    case OpKind::kErf:
    case OpKind::kErfc:
    case OpKind::kExp:
    case OpKind::kExp2:
    case OpKind::kExpm1:
    case OpKind::kLog:
    case OpKind::kLog10:
    case OpKind::kLog1p:
    case OpKind::kLog2:
    case OpKind::kPow:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kSin:
    case OpKind::kSinh:
    case OpKind::kTan:
    case OpKind::kTanh:
      return true;
    // Each executor has a library of its own.
    case OpKind::kErfcinv:
    case OpKind::kErfinv:
    case OpKind::kLgamma:
      return false;
    // Either of -0 and 0 may be the result.
    case OpKind::kClamp:
    case OpKind::kMaximum:
    case OpKind::kMinimum:
    case OpKind::kRelu:
      return false;
    case OpKind::kComplex:
    case OpKind::kImag:
    case OpKind::kIsfinite:
    case OpKind::kIsinf:
    case OpKind::kIsnan:
    case OpKind::kIsneginf:
    case OpKind::kIsposinf:
    case OpKind::kIsreal:
    case OpKind::kReal:
    case OpKind::kSignbit:
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
