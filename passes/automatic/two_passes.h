// Running moments in two passes (the rewrite `two_pass_moments`): whether the automatic plan computes a fusion's welfords
// so. It plans the fusion both ways, and compares the plans.
//
//   const auto steps = two_pass_rewrites(fusion, before);   // rewrite name "two_pass_moments", …
//   if (may_keep_rows(plan) && is_better_in_two_passes(plan, plan_of_the_rewritten)) …
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/automatic/plan_automatic.h"

namespace fusebox {

// The rewrites, of these and in this order, that change the fusion.
std::vector<Step> changing_rewrites(Graph g, std::span<const std::string_view> names, const Defects& defects);
// The same of a fusion with steps applied, or nothing if the first of them changes nothing.
std::vector<Step> rewrites_led_by_first(const Graph& fusion, const std::vector<Step>& before,
                                        std::span<const std::string_view> names, const Defects& defects);
// The rewrites that compute the moments of a fusion, once steps are applied, in two passes. Empty if it has no such.
std::vector<Step> two_pass_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects = {});
// Whether a plan may have a better one in two passes: no row is walked again in memory.
bool may_keep_rows(const AutomaticPlan& plan);
// Whether the plan of the rewritten fusion may be the better one, as far as can be told before it is made: most are not.
bool may_be_better_in_two_passes(const AutomaticPlan& plan, const Graph& rewritten, const AutomaticOptions& options);
// Whether the plan of the rewritten fusion is the better one: no row is walked again in memory, and no more kernels run.
bool is_better_in_two_passes(const AutomaticPlan& plan, const AutomaticPlan& rewritten);

}  // namespace fusebox
