// Every op of the math level, on every dtype that it takes, over boundary shapes, strides and values: small fusions
// that the executors are judged by.
//
//   for (const OpCase& c : op_cases(OpKind::kAdd).cases) …   // each a fusion and its inputs
#pragma once

#include <string>
#include <vector>

#include "ir/module/module.h"

namespace fusebox::test {

struct OpCase {
  std::string name;  // `add bf16 [5, 7] permuted`
  OpKind kind = OpKind::kSet;
  Dtype dtype = Dtype::kFloat;
  Graph fusion;
  std::vector<InputSpec> inputs;
};

// The same list every time. Ops that refuse a dtype, with a code, are left out of it; `refused` counts them.
struct OpCases {
  std::vector<OpCase> cases;
  int refused = 0;
};
OpCases op_cases(OpKind kind);

// The ops that there are cases of: those of the math level, without signatures and arithmetic on indices.
std::vector<OpKind> ops_with_cases();

}  // namespace fusebox::test
