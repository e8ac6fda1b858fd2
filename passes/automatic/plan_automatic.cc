#include "passes/automatic/plan_automatic.h"

#include "ir/canonical/canonical.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

constexpr const char* kUnfused = "unfused";

// A schedule that was found for one segment.
struct Found {
  std::vector<Step> steps;
  Heuristics heuristics;
  std::vector<Declined> declined;
};

// Why the steps make no kernel of the fusion; empty if they do.
std::string refusal(Graph fusion, const std::vector<Step>& steps, const Defects& defects) {
  try {
    StepApplier applier(fusion, defects);
    for (const Step& step : steps) applier.apply(step);
    plan_refusable(canonical_order(fusion), {.defects = defects, .sizes = {}});
  } catch (const Error& e) {
    return "its schedule is refused: " + std::string(e.what()) + (e.place.empty() ? "" : " (" + e.place + ")");
  }
  return {};
}

// The first scheduler that makes one kernel of the fusion. Without one, the heuristics are empty.
Found find_schedule(const ScheduleView& view, const Defects& defects) {
  Found found;
  for (const Scheduler& s : schedulers()) {
    auto why = s.declines(view);
    if (!why) {
      found.heuristics = s.choose(view);
      found.steps = s.plan(view, found.heuristics);
      if (std::string refused = refusal(view.fusion, found.steps, defects); refused.empty())
        return found;
      else
        why = std::move(refused);
    }
    found.declined.push_back({std::string(s.name), *why});
  }
  found.heuristics = {};
  found.steps.clear();
  return found;
}

}  // namespace

std::vector<Step> automatic_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects) {
  // Folding comes first because it leaves more for the others, and dead code goes last.
  constexpr const char* kOrder[] = {"fold_constants", "identity_ops",          "identity_moves",
                                    "cast_pairs",     "common_subexpressions", "dead_code"};
  std::vector<Step> steps;
  Graph g = fusion;
  apply_steps(g, before, defects);
  for (const char* name : kOrder) {
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

AutomaticPlan plan_automatic(const Graph& fusion, const AutomaticOptions& options) {
  AutomaticPlan plan;
  const Segmentation whole = plan_single(fusion, {}, options.defects);
  if (whole.segments.empty()) return plan;
  const Graph part = extract(fusion, whole.segments[0]);
  const Rebinder rebinder(fusion, options.sizes);
  const SizeClasses sizes(part, rebinder.to(part));
  Found found = find_schedule({part, sizes, options.memory, options.device}, options.defects);
  if (!found.heuristics.scheduler.empty()) {
    plan.steps = std::move(found.steps);
    plan.decisions.push_back({fusion.name, std::move(found.heuristics), std::move(found.declined)});
    return plan;
  }
  found.heuristics.scheduler = kUnfused;
  plan.decisions.push_back({fusion.name, std::move(found.heuristics), std::move(found.declined)});
  return plan;
}

}  // namespace fusebox
