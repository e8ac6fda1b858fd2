// Whether a scalar is a constant of a known number.
//
//   // %y = mul %x, 1.0_f32
//   is_number(g, operands[1], 1.0)   // true
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// A dtype of real numbers that ops compute in.
bool is_real(Dtype d);
// Whether a value is a constant scalar of exactly this real number, sign included.
bool is_number(const Graph& g, ValueId v, double wanted);

}  // namespace fusebox
