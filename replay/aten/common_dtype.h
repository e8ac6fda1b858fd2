// The dtype in which the operands of an op meet, by ATen's own rule. The compiler's rule is in ir/table/type_rule.h; the
// reference asks ATen instead, so that a wrong rule there is found.
//
//   common_dtype_by_aten({{kInt32, kFloat}}, {{true, false}})      // i32 tensor, f32 scalar: f32
//   common_dtype_by_aten({{kBfloat16, kDouble}}, {{true, false}})  // bf16 tensor, f64 scalar: bf16
#pragma once

#include <span>

#include "ir/table/dtype.h"

namespace fusebox::aten {

// `is_tensor` tells for each operand whether it is a tensor or a scalar. Dtypes that ATen does not promote, such as wide
// unsigned integers, meet in the widest of the highest class; u64 wins over signed integers.
Dtype common_dtype_by_aten(std::span<const Dtype> dtypes, std::span<const bool> is_tensor);

}  // namespace fusebox::aten
