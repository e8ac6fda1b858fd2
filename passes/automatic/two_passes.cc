#include "passes/automatic/two_passes.h"

#include <algorithm>
#include <string>

#include "passes/automatic/cut.h"
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

std::vector<Step> rewrites_led_by_first(const Graph& fusion, const std::vector<Step>& before,
                                        std::span<const std::string_view> names, const Defects& defects) {
  Graph g = fusion;
  apply_steps(g, before, defects);
  std::vector<Step> steps = changing_rewrites(g, names.first(1), defects);
  return steps.empty() ? steps : changing_rewrites(g, names, defects);
}

std::vector<Step> two_pass_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects) {
  constexpr std::string_view kOrder[] = {"two_pass_moments", "dead_code"};
  if (std::ranges::none_of(fusion.ops, [](const Op& op) { return op.kind == OpKind::kWelford; })) return {};
  return rewrites_led_by_first(fusion, before, kOrder, defects);
}

namespace {

// Whether no row is walked again in memory.
bool keeps_rows(const Heuristics& h) { return h.scheduler != "persistent" || h.word("form") == "registers"; }

}  // namespace

bool may_keep_rows(const AutomaticPlan& plan) {
  return std::ranges::all_of(plan.decisions, [](const Decision& d) { return keeps_rows(d.heuristics); });
}

bool may_be_better_in_two_passes(const AutomaticPlan& plan, const Graph& rewritten, const AutomaticOptions& options) {
  // Several kernels, and layouts that follow from an input's memory, take the whole plan.
  const bool overwrites =
      std::ranges::any_of(outputs(rewritten), [](const OutputRef& out) { return static_cast<bool>(out.alias); });
  if (plan.decisions.size() != 1 || overwrites || !options.heuristics.empty()) return true;
  const auto choice = choice_for_all(rewritten, options);
  return choice && keeps_rows(*choice);
}

bool is_better_in_two_passes(const AutomaticPlan& plan, const AutomaticPlan& rewritten) {
  const auto unfused = [](const AutomaticPlan& p) {
    return std::ranges::count_if(p.decisions, [](const Decision& d) { return d.heuristics.scheduler == "unfused"; });
  };
  return may_keep_rows(rewritten) && rewritten.decisions.size() <= plan.decisions.size() &&
         unfused(rewritten) <= unfused(plan);
}

}  // namespace fusebox
