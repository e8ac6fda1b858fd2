// Type rules of ops that compute: the dtypes that an op accepts, and the dtype of its result. The rules are ATen's and
// look at dtypes alone; infer.h has the rules for shapes.
//
// Invariants:
// - A scalar does not change the dtype of tensors of the same or a higher class (bool < integer < floating < complex).
//   A complex scalar beside floating tensors gives the complex dtype of their width.
// - An op computes in the dtype that its operands meet in; f16, bf16 and narrower floats are computed in f32. A scalar
//   beside tensors is converted to that dtype, and an integer wraps.
// - Ops on floats (exp, sqrt, truediv, …) turn integers and bool into f32. Comparisons and tests give bool. sum and
//   prod of bool and integers give i64. abs, real and imag of a complex number give its real dtype.
// - kUnsupportedDtype refuses a dtype that exists as data only. It also refuses complex operands of an elementary
//   function, except tensors where ATen computes it (FUSEBOX_COMPLEX_FUNCTION_OPS).
//
//   common_dtype({{{Dtype::kBfloat16}, {Dtype::kDouble, true}}}) == Dtype::kBfloat16
//   scalar_dtype(OpKind::kLogicalRightShift, {{{Dtype::kInt32}, {Dtype::kInt64, true}}}, 1) == Dtype::kInt32
//   result_dtype(OpKind::kTruediv, {{{Dtype::kInt32}, {Dtype::kInt32}}}) == Dtype::kFloat
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/table/attr.h"
#include "ir/table/defect.h"
#include "ir/table/op.h"

namespace fusebox {

struct OperandType {
  Dtype dtype;
  bool is_scalar = false;
  std::string_view name = {};  // for the place of an error
};

// The dtype that the operands of one op meet in. Throws kDtypeMismatch if there is none.
Dtype common_dtype(std::span<const OperandType> operands, const Defects& defects = {});

// The dtype of the (first) result of a pointwise op, a reduction, cat, or an op that passes on its first operand's
// dtype. Throws kDtypeMismatch or kUnsupportedDtype; the place is the operand that is not accepted.
Dtype result_dtype(OpKind kind, std::span<const OperandType> operands, const Attrs& attrs = {},
                   const Defects& defects = {});

// The dtypes of the results of an op in FUSEBOX_MOMENT_OPS that reduces a tensor of this dtype. Operands that the op merges
// have the same dtypes.
std::vector<Dtype> moment_dtypes(OpKind kind, Dtype value);

// The dtype that operand `i`, a scalar beside tensors, is converted to before the op computes. For comparisons, logic
// and `where` it is the dtype that the operands meet in; for arithmetic it is the dtype that the op computes in.
// Returns nothing for an operand that is not converted: a tensor, a scalar beside no tensor, the condition of `where`,
// the diagonal of `triu`.
std::optional<Dtype> scalar_dtype(OpKind kind, std::span<const OperandType> operands, size_t i);

// Throws if pad cannot fill the tensor with this value: kUnsupportedDtype if the tensor's dtype exists as data only,
// kDtypeMismatch for a complex value in a real tensor or a floating value in a tensor of integers or bool.
void check_fill(Dtype tensor, const OperandType& fill);

// The dtype that a random op is asked for: the attribute `as`, or f32 without it.
Dtype random_dtype(const Attrs& attrs);

// Whether the op accepts the dtype as the one that its operands meet in. Tests and generators ask this.
bool accepts_dtype(OpKind kind, Dtype dtype);

// Whether ATen alone computes the op on tensors that meet in this dtype: no kernel has it. The op has the demand
// kLibrary, or is an elementary function and the dtype is complex.
bool is_library(OpKind kind, Dtype dtype);

}  // namespace fusebox
