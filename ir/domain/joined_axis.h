// The axis along which a cat joins its operands. There each operand is a part of the result: its axis is the result's,
// resized by the lengths of the operands before it and behind it.
//
//   %c = cat [%a, %b] axis 0   // %a has 3 elements, %b has %n
//   joined_axis(g, cat, 1)     // %c.i0 is %b.i0 resized by 3 on the left and by 0 on the right
#pragma once

#include <optional>

#include "ir/scalar/scalar_form.h"

namespace fusebox {

struct JoinedAxis {
  DomainId operand;  // a logical domain of the operand
  DomainId result;   // a root domain of the cat's result
  ScalarForm left, right;
};

// Nothing if the op is no cat, the operand's axis is a broadcast, or a length is no polynomial of scalars.
std::optional<JoinedAxis> joined_axis(const Graph& g, OpId op, size_t operand);

// The resize among the tensor's transforms that makes the result's axis of the operand's. None if there is none.
TransformId joining_resize(const Graph& g, TensorId operand, const JoinedAxis& axis);

}  // namespace fusebox
