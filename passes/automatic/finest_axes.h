// Whether the automatic plan computes a fusion with the finest axes that its reshapes make (the rewrite `finest_axes`): then
// reshapes stand at inputs and outputs alone, where they are views. It plans the fusion both ways, and compares the plans.
//
//   const auto steps = finest_axes_rewrites(fusion, before);   // rewrite name "finest_axes", …
#pragma once

#include <span>
#include <vector>

#include "passes/automatic/plan_automatic.h"

namespace fusebox {

// The rewrites that bring a fusion into this form, once steps are applied. Empty if they change nothing.
std::vector<Step> finest_axes_rewrites(const Graph& fusion, const std::vector<Step>& before,
                                       const Defects& defects = {});

// Whether a fusion may be planned so for the classes of sizes of `concretized`. No axis may be empty: a product of sizes tells
// nothing of its factors then, and the rewrite rests on that. And where symbolic axes are resolved, an output that overwrites an
// input may turn out to be an expanded broadcast if reshapes go.
bool may_take_finest_axes(const Graph& fusion, const Graph& concretized, const AutomaticOptions& options);
// Whether these steps have the rewrite.
bool has_finest_axes(std::span<const Step> steps);

// What a plan costs: the bytes that its kernels and ATen calls read and write, and how many these are.
struct PlanCost {
  double bytes = 0;
  size_t launches = 0;
  auto operator<=>(const PlanCost&) const = default;
};
PlanCost cost_of(const AutomaticPlan& plan, const Graph& fusion, const AutomaticOptions& options);

}  // namespace fusebox
