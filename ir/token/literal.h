// Numbers and names in the text form.
//
//   print_literal(Dtype::kFloat, bits of 1.5f)   // `1.5_f32`
#pragma once

#include <string>

#include "ir/graph/graph.h"

namespace fusebox {

std::string print_literal(Dtype dtype, ConstantBits bits);
std::string print_value(const Graph& g, ValueId value);  // `%x`, or the constant

}  // namespace fusebox
