// The nest of one tensor by itself: its loop domains are loop variables, and every domain's value is a form of them,
// holes included. Id graphs, explanations and pictures read it. Lowering sees the same values through `StatementView`.
//
// Invariant: constructing it clears the algebra, so an algebra serves one nest at a time. Loop variables are numbered
// by position in the loop domain.
//
//   TensorNest nest(g, plan, extents, algebra, y);      // i1 split by 128 → o, t
//   algebra.to_string(nest.values.value(i1)) == "128*o + t"
#pragma once

#include "passes/nest/domain_values.h"

namespace fusebox {

struct TensorNest {
  TensorNest(const Graph& g, const NestPlan& plan, const ExtentClasses& extents, IndexAlgebra& algebra, TensorId t);
  TensorNest(const TensorNest&) = delete;  // `values` refers to `symbols`
  TensorNest& operator=(const TensorNest&) = delete;

  TensorId tensor;
  IndexAlgebra& algebra;
  Symbols symbols;
  DomainValues values;
};

}  // namespace fusebox
