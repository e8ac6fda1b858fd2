#include "passes/automatic/two_passes.h"

#include <algorithm>
#include <string>

#include "passes/schedule/apply_steps.h"

namespace fusebox {

std::vector<Step> changing_rewrites(Graph g, std::span<const std::string_view> names, const Defects& defects) {
  std::vector<Step> steps;
  for (std::string_view name : names) {
    Step step{StepKind::kRewrite, {}, {}, {}};
    step.attrs.set(AttrKey::kName, std::string(name));
    if (step_refusal(g, step)) continue;
    Graph next = g;
    apply_step(next, step, defects);
    if (next == g) continue;
    g = std::move(next);
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Step> two_pass_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects) {
  constexpr std::string_view kOrder[] = {"two_pass_moments", "dead_code"};
  if (std::ranges::none_of(fusion.ops, [](const Op& op) { return op.kind == OpKind::kWelford; })) return {};
  Graph g = fusion;
  apply_steps(g, before, defects);
  std::vector<Step> steps = changing_rewrites(g, std::span(kOrder).first(1), defects);
  return steps.empty() ? steps : changing_rewrites(g, kOrder, defects);
}

bool may_keep_rows(const AutomaticPlan& plan) {
  return std::ranges::none_of(plan.decisions, [](const Decision& d) {
    return d.heuristics.scheduler == "persistent" && d.heuristics.word("form") != "registers";
  });
}

bool is_better_in_two_passes(const AutomaticPlan& plan, const AutomaticPlan& rewritten) {
  const auto unfused = [](const AutomaticPlan& p) {
    return std::ranges::count_if(p.decisions, [](const Decision& d) { return d.heuristics.scheduler == "unfused"; });
  };
  return may_keep_rows(rewritten) && rewritten.decisions.size() <= plan.decisions.size() &&
         unfused(rewritten) <= unfused(plan);
}

}  // namespace fusebox
