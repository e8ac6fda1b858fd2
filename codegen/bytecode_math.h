// Decides how a kernel op is computed: its class, the dtype it computes in, and the dtype of the result before rounding.
//
//   math_plan(OpKind::kLt, {bf16, f32}, bool)  ->  {class kCompare, compute f32, native bool}
#pragma once

#include <span>

#include "ir/graph/graph.h"

namespace fusebox {

enum class MathClass : uint8_t {
  kNotMath,  // control, memory, threads, or not of kernel level
  kMove,     // set, segment_set: the value itself
  kCast,
  kArithmetic,  // in the operands' common dtype; bool as 0 and 1
  kFloating,    // integers and bool become the result's dtype
  kBitwise,     // bool stays bool
  kCompare,     // gives bool
  kLogical,     // operands become bool
  kTest,        // gives bool, of one operand
  kSelect,      // where
  kPart,        // abs, real and imag: complex gives its real dtype
  kPair,        // complex
  kWelford,
};
MathClass math_class(OpKind kind);

struct MathPlan {
  MathClass kind = MathClass::kNotMath;
  Dtype compute = Dtype::kFloat;  // the dtype that operands are converted to
  Dtype native = Dtype::kFloat;   // the result's dtype before it is rounded or converted to the declared one
};
// Throws kUnsupportedDtype for arithmetic on storage-only dtypes; kDtypeMismatch as `promote` does.
MathPlan math_plan(OpKind kind, std::span<const Dtype> operands, Dtype result);

}  // namespace fusebox
