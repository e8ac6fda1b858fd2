// Products of matrices with what follows them, each of them one call of a library (ir/infer/product_call.h).
//
//   for (const OpCase& c : epilogue_cases(200, 1)) …   // a fusion of several ops and its inputs
#pragma once

#include "tests/support/op_cases.h"

namespace fusebox::test {

// Every product, dtype, activation and way to write a bias in turn, with random extents (0 and 1 among them), scales and
// inputs; `by_boundaries`: inputs are NaN, infinite and the largest numbers too.
std::vector<OpCase> epilogue_cases(int count, uint64_t seed, bool by_boundaries = false);

}  // namespace fusebox::test
