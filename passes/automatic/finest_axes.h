// Whether the automatic plan computes a fusion with the finest axes that its reshapes make (the rewrite `finest_axes`): then
// reshapes stand at inputs and outputs alone, where they are views. It plans the fusion both ways, and compares the plans.
//
//   const auto steps = finest_axes_rewrites(fusion, before);   // rewrite name "finest_axes", …
#pragma once

#include <vector>

#include "passes/automatic/plan_automatic.h"

namespace fusebox {

// The rewrites that bring a fusion into this form, once steps are applied. Empty if they change nothing.
std::vector<Step> finest_axes_rewrites(const Graph& fusion, const std::vector<Step>& before,
                                       const Defects& defects = {});

// Whether no axis of a fusion is empty, as the classes of sizes show.
bool has_elements(const Graph& fusion, const AutomaticOptions& options);

// What a plan costs: the bytes that its kernels and ATen calls read and write, and how many these are.
struct PlanCost {
  double bytes = 0;
  size_t launches = 0;
  auto operator<=>(const PlanCost&) const = default;
};
PlanCost cost_of(const AutomaticPlan& plan, const Graph& fusion, const AutomaticOptions& options);

}  // namespace fusebox
