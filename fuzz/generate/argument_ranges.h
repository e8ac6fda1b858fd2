// Arguments that reach each branch of an elementary function: near zeros and poles, where a series takes over, where
// results overflow or become subnormal, and where the argument must be reduced.
//
// Invariants: a range is not empty, and its ends are finite. A function of two operands has no range; both operands
// take boundary values, so that all their pairs occur.
//
//   const ArgumentRange& r = random.pick(argument_ranges());
//   r.kind == OpKind::kErfcinv, r.low == 1e-305, r.high == 1e-200, r.dtype == Dtype::kDouble
#pragma once

#include <vector>

#include "ir/table/enums.h"
#include "ir/table/op.h"

namespace fusebox::fuzz {

struct ArgumentRange {
  OpKind kind = OpKind::kSet;
  Dtype dtype = Dtype::kFloat;
  double low = 0, high = 0;
  bool is_pair = false;  // two operands, both boundary values
};

const std::vector<ArgumentRange>& argument_ranges();

}  // namespace fusebox::fuzz
