// Maps the intervals of a real op's operands to that of its result, and bounds the error of an implementation of the op.
//
//   image_of(OpKind::kFloor, 2, {{.v = 2.1, .b = 0.2, .lo = 1.9, .hi = 2.3}})  ->  [1, 2], a jump
//   own_error(OpKind::kExp, Dtype::kFloat, 1.0, …) == 2 ulp of float at 1
#pragma once

#include <span>

#include "ir/table/op.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {

// `y` is the op's value at the operands' values. At least one operand is not exact; no bound is infinite.
Image image_of(OpKind kind, double y, std::span<const Operand> operands);

// The absolute error besides rounding to the declared dtype; 0 if IEEE fixes every bit. `compute` is the computation
// dtype, `image` the interval that the value may lie in. `by_cuda`: a function of CUDA's library may compute the op.
double own_error(OpKind kind, Dtype compute, double y, const Image& image, std::span<const Operand> operands,
                 bool by_cuda = false);

// The same for an op that a GPU may compute by an approximation of its hardware (fast_table.inc). An exact result lies
// within this error too. Only f32 has such approximations.
bool has_fast_error(OpKind kind, Dtype compute);
double fast_error(OpKind kind, double y, const Image& image, std::span<const Operand> operands);

// Whether exact operands leave the result open, because it depends on a zero's sign that is not known.
bool depends_on_zero_sign(OpKind kind, std::span<const Operand> operands);

// Whether the op has an error of its own.
bool has_own_error(OpKind kind);

}  // namespace fusebox::aten
