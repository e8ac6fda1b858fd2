// Questions about one statement of a plan: what it checks, and how far data may choose its places. Stages ask them, and so do
// emission and pictures, which may not see the stages (plan_stages.h).
//
//   StatementView view = ...;
//   for (const Condition& c : conditions_of(plan, view, StatementKind::kMain)) ...   // `128*o#0 + t#1 < %n`
#pragma once

#include <optional>
#include <vector>

#include "passes/plan/kernel_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

// The checks of a tensor's domains. `values` are the domains as the view's op sees them.
std::vector<DomainCheck> domain_checks(const KernelPlan& plan, StatementView& view, DomainValues& values);
// The conditions under which the statement runs at a loop point. Needs the stages up to plan_replicas.
std::vector<Condition> conditions_of(const KernelPlan& plan, StatementView& view, StatementKind kind);
// Takes a loop out of each condition that is the same in all of its iterations: `8*o + v < n` with v below 8 is `8*o < n` if
// 8 divides n. The iterations then take one branch.
void leave_chunks_out(const KernelPlan& plan, StatementView& view, std::vector<Condition>& conditions);
// The comparisons of the conditions as forms that are nonnegative wherever all conditions hold. Conditions on a thread's own
// index are left out.
std::vector<Form> forms_that_hold(IndexAlgebra& algebra, const std::vector<Condition>& conditions);
// The value of a domain's check as a function of one loop that it does not fall along, the loop being a node of the nest.
// Nothing if the check is another one, or if that is not seen.
std::optional<LinearForm> rise_along(IndexAlgebra& algebra, const Condition& check, uint32_t node);
// Whether the check is seen to hold up to this index of the loop, whatever the other loops' indices are.
bool holds_up_to(IndexAlgebra& algebra, const Condition& check, const LinearForm& rise, int64_t index);
// The extent of a scatter's index along its axis, and the same as a number if it is constant.
Form scatter_extent(const KernelPlan& plan, StatementView& view);
std::optional<int64_t> scatter_count(const KernelPlan& plan, StatementView& view);

}  // namespace fusebox
