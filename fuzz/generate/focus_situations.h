// The lists of focus.h whose combinations take several ops or steps to make.
#pragma once

#include "fuzz/generate/focus.h"

namespace fusebox::fuzz {

// Sets what the case of a number is aimed at. Consecutive numbers walk through all lists, each in a fixed order.
void aim_situation(uint64_t number, Focus& focus);

// Each class of ops of two and three operands, beside dtypes of tensors and scalars; kIndex stands for a size.
const std::vector<ScalarFocus>& scalar_list();

}  // namespace fusebox::fuzz
