#include "passes/schedule/arithmetic.h"

namespace fusebox {

bool is_arithmetic(OpKind kind) {
  switch (kind) {
    case OpKind::kNeg:
    case OpKind::kAbs:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kWhere:
      return true;
    default:  // any other: it costs more, or makes fewer bytes than it reads
      return false;
  }
}

}  // namespace fusebox
