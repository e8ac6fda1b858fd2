// ATen's function for each op of one or two numbers, where ATen's rule is this project's. The files native_*.cc decide for
// which dtypes it is.
//
//   unary_of(OpKind::kCos)                        // x -> at::cos(x)
//   native_value(OpKind::kAdd, {{x, y}})          // at::add(x, y)
//   native_value(OpKind::kLerp, {{x, y, w}})      // undefined: ATen is not asked for it
#pragma once

#include <ATen/ATen.h>
#include <span>

#include "ir/table/op.h"

namespace fusebox::aten {

using UnaryFunction = at::Tensor (*)(const at::Tensor&);
using BinaryFunction = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

// Null if ATen has no such function of one number, or of two.
UnaryFunction unary_of(OpKind kind);
BinaryFunction binary_of(OpKind kind);

// The value of the op's function. Undefined if ATen has no such function of one or two numbers. There are as many
// operands as the op takes.
at::Tensor native_value(OpKind kind, std::span<const at::Tensor> operands);

}  // namespace fusebox::aten
