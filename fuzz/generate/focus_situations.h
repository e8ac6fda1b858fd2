// The lists of focus.h whose combinations take several ops or steps.
#pragma once

#include "fuzz/generate/focus.h"

namespace fusebox::fuzz {

// Aims the case of this number. Consecutive numbers walk through all lists, each in a fixed order.
void aim_situation(uint64_t number, Focus& focus);

// Each class of ops of two and three operands with all dtypes of tensors and scalars; kIndex stands for a size.
const std::vector<ScalarFocus>& scalar_list();

}  // namespace fusebox::fuzz
