#include "passes/automatic/plan_automatic.h"

#include "passes/automatic/cut.h"
#include "passes/automatic/two_passes.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/fresh_names.h"
#include "passes/segment/assign_step.h"

namespace fusebox {
namespace {

constexpr const char* kUnfused = "unfused";

Step assign_step(const Graph& g, const CutPart& part, const std::string& name) {
  std::vector<std::string> ops;
  for (OpId op : part.ops) ops.push_back(g[g[op].results[0]].name);
  return fusebox::assign_step(ops, name, part.executor);
}

}  // namespace

std::vector<Step> automatic_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects) {
  // Folding comes first because it leaves more for the others, and dead code goes last.
  constexpr std::string_view kOrder[] = {"fold_constants", "identity_ops",          "identity_moves", "early_gathers",
                                         "cast_pairs",     "common_subexpressions", "dead_code"};
  Graph g = fusion;
  apply_steps(g, before, defects);
  return changing_rewrites(g, kOrder, defects);
}

AutomaticPlan plan_automatic(const Graph& fusion, const AutomaticOptions& options) {
  AutomaticPlan plan;
  std::vector<CutPart> parts = cut(fusion, options, plan.work);
  // One kernel needs no names. An op that runs unfused needs its assignment, or the plan would be an empty schedule.
  const bool is_one = parts.size() == 1 && !parts[0].steps.empty();
  const auto name_of = [&](size_t i) {
    if (i > 0 && i + 1 == parts.size() && options.defects.has(Defect::kPlanNameRepeats)) --i;
    const std::string name = part_name(fusion, i, parts.size());
    return is_one ? name : assignable_name(name);
  };
  // All assignments come before the first schedule, as in lists that people write.
  if (!is_one && !(parts.size() == 1 && options.defects.has(Defect::kPlanUnassigned)))
    for (size_t i = 0; i < parts.size(); ++i) plan.steps.push_back(assign_step(fusion, parts[i], name_of(i)));
  for (size_t i = 0; i < parts.size(); ++i) {
    CutPart& part = parts[i];
    const std::string name = name_of(i);
    PlannedSegment& planned = plan.planned.emplace_back(std::move(part.planned));
    planned.segment.name = planned.scheduled.name = name;
    planned.segment.executor = part.executor;
    planned.segment.steps = part.steps;
    for (Step& step : part.steps) {
      const bool is_for_other = i > 0 && i + 1 == parts.size() && options.defects.has(Defect::kPlanStepsOfOther);
      if (!is_one) step.attrs.set(AttrKey::kSegment, is_for_other ? name_of(i - 1) : name);
      plan.steps.push_back(std::move(step));
    }
    if (part.heuristics.scheduler.empty()) part.heuristics.scheduler = kUnfused;
    plan.decisions.push_back({name, std::move(part.heuristics), std::move(part.declined), std::move(part.others)});
  }
  return plan;
}

}  // namespace fusebox
