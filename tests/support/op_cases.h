// Every op of the math level on every dtype that it accepts, over boundary shapes, strides and values, as small fusions
// for testing executors.
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

// The list is always the same. It leaves out dtypes that an op refuses with a code; `refused` counts these.
struct OpCases {
  std::vector<OpCase> cases;
  int refused = 0;
};
OpCases op_cases(OpKind kind);

// The ops that have cases: those of the math level, without signature ops and index arithmetic.
std::vector<OpKind> ops_with_cases();

}  // namespace fusebox::test
