// Type rules of ops that compute: which dtypes an op accepts and what dtype its result has. ATen's rules, on dtypes
// alone; shapes are infer.h's matter.
//
// Invariants:
// - a scalar of the same or a lower class (bool < integer < floating < complex) than the tensors does not change their
//   dtype; a complex scalar beside floating tensors makes the complex dtype of their width;
// - an op computes in the dtype that its operands meet in, f16 and bf16 in f32: a scalar beside tensors is converted to
//   that, and an integer wraps;
// - ops of floats (exp, sqrt, truediv, …) turn integers and bool into f32; comparisons and tests give bool; sum and
//   prod of bool and integers give i64; abs, real and imag of complex give its real dtype;
// - dtypes that exist as data only are refused with kUnsupportedDtype, as is complex where the op has no complex
//   arithmetic here.
//
//   common_dtype({{{Dtype::kBfloat16}, {Dtype::kDouble, true}}}) == Dtype::kBfloat16
//   scalar_dtype(OpKind::kLogicalRightShift, {{{Dtype::kInt32}, {Dtype::kInt64, true}}}, 1) == Dtype::kInt32
//   result_dtype(OpKind::kTruediv, {{{Dtype::kInt32}, {Dtype::kInt32}}}) == Dtype::kFloat
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/table/attr.h"
#include "ir/table/defect.h"
#include "ir/table/op.h"

namespace fusebox {

struct OperandType {
  Dtype dtype;
  bool is_scalar = false;
  std::string_view name = {};  // for the place of an error
};

// The dtype that operands of one op meet in; throws kDtypeMismatch where there is none.
Dtype common_dtype(std::span<const OperandType> operands, const Defects& defects = {});

// The dtype of the (first) result of an op that computes: pointwise ops, reductions, cat, and those that hand their
// first operand's dtype on. Throws kDtypeMismatch or kUnsupportedDtype, at the operand that is not accepted.
Dtype result_dtype(OpKind kind, std::span<const OperandType> operands, const Attrs& attrs = {},
                   const Defects& defects = {});

// The dtype that operand `i`, a scalar beside tensors, is converted to before the op computes. Comparisons, logic and
// choices take the dtype that the operands meet in, arithmetic the one that it computes in. Nothing for what is not
// converted: any other operand, the condition of where, a diagonal.
std::optional<Dtype> scalar_dtype(OpKind kind, std::span<const OperandType> operands, size_t i);

// Refuses a value that pad cannot fill a tensor with: one of a higher class, or any where the dtype has no arithmetic.
void check_fill(Dtype tensor, const OperandType& fill);

// Whether the op accepts the dtype for an operand that is converted to the common dtype. What tests and generators go
// by.
bool accepts_dtype(OpKind kind, Dtype dtype);

}  // namespace fusebox
