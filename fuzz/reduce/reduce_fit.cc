// Adapts a schedule after an edit: names of removed domains, steps that no longer apply, ops of segments.
#include <algorithm>

#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/reduce/reduce_rules.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {
namespace {

bool is_assign(const Step& s) { return s.kind == StepKind::kAssign; }

// For a schedule of one kernel: the steps that can be applied one after another.
std::vector<Step> applicable(Graph g, std::span<const Step> steps) {
  std::vector<Step> kept;
  for (const Step& s : steps) {
    if (step_refusal(g, s)) continue;
    apply_step(g, s);
    kept.push_back(s);
  }
  return kept;
}

bool has_plan(const Graph& g, std::span<const Step> steps) {
  try {
    plan_steps(g, steps);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The ops that no step assigns, named by their first results.
std::vector<StepOperand> unassigned(const Graph& g, std::span<const Step> assigns) {
  std::set<OpId> assigned;
  for (const Step& s : assigns)
    for (const StepOperand& o : s.operands)
      if (const auto op = op_making(g, o.value)) assigned.insert(*op);
  std::vector<StepOperand> rest;
  for (OpId op : tensor_ops(g))
    if (!assigned.contains(op)) rest.push_back(StepOperand::of(g[g[op].results[0]].name));
  return rest;
}

bool is_kernel(const Step& assign) {
  return assign.attrs.enumerator<SegmentExecutor>(AttrKey::kExecutor) == SegmentExecutor::kKernel;
}

// The assign steps, reduced to the ops that exist. Ops that no step assigns any more go to the first segment that can
// hold them, preferably a kernel. Returns none if the fusion is one kernel, and nothing if the segments have no order.
std::optional<std::vector<Step>> fitted_assigns(const Graph& g, std::span<const Step> steps) {
  std::vector<Step> assigns;
  for (const Step& s : steps)
    if (is_assign(s)) assigns.push_back(s);
  for (Step& s : assigns) std::erase_if(s.operands, [&](const StepOperand& o) { return !op_making(g, o.value); });
  std::erase_if(assigns, [](const Step& s) { return s.operands.empty(); });
  const std::vector<StepOperand> rest = unassigned(g, assigns);
  if (assigns.empty() || (rest.empty() && has_plan(g, assigns))) return assigns;
  for (const bool kernels : {true, false})
    for (size_t i = 0; i < assigns.size() && !rest.empty(); ++i) {
      if (is_kernel(assigns[i]) != kernels) continue;
      std::vector<Step> fitted = assigns;
      fitted[i].operands.insert(fitted[i].operands.end(), rest.begin(), rest.end());
      if (has_plan(g, fitted)) return fitted;
    }
  return std::nullopt;
}

// For a schedule with segments: the steps whose segment exists and that can be applied there.
std::vector<Step> applicable_in_segments(const Graph& g, std::vector<Step> assigns, std::span<const Step> steps) {
  std::vector<Step> kept = std::move(assigns);
  for (const Step& s : steps) {
    kept.push_back(s);
    if (!has_plan(g, kept)) kept.pop_back();
  }
  std::vector<bool> refused(kept.size());
  for (const Segment& segment : plan_steps(g, kept).segments) {
    if (segment.executor != SegmentExecutor::kKernel) continue;
    Graph part = extract(g, segment);
    size_t at = 0;
    for (const Step& s : segment.steps) {
      const auto it = std::find(kept.begin() + static_cast<std::ptrdiff_t>(at), kept.end(), s);
      if (!step_refusal(part, s))
        apply_step(part, s);
      else if (it != kept.end())
        refused[static_cast<size_t>(it - kept.begin())] = true;
      if (it != kept.end()) at = static_cast<size_t>(it - kept.begin()) + 1;
    }
  }
  std::vector<Step> result;
  for (size_t i = 0; i < kept.size(); ++i)
    if (!refused[i]) result.push_back(std::move(kept[i]));
  return result;
}

}  // namespace

void rename_domains(std::vector<Step>& steps, const std::map<std::string, std::vector<bool>>& removed) {
  std::map<std::string, std::vector<bool>> of = removed;
  for (Step& s : steps) {
    for (StepOperand& o : s.operands) {
      const auto it = of.find(o.value);
      if (it == of.end() || o.domain.size() < 2 || (o.domain[0] != 'i' && o.domain[0] != 'r')) continue;
      const auto at = parse_position(o.domain.substr(1), it->second.size());
      if (!at) continue;
      const auto before = std::count(it->second.begin(), it->second.begin() + static_cast<std::ptrdiff_t>(*at), true);
      o.domain = it->second[*at] ? "gone" : o.domain.substr(0, 1) + std::to_string(static_cast<int64_t>(*at) - before);
    }
    // A tensor that a step makes has the domains of the step's first tensor.
    if (s.operands.empty() || !row_of(s.kind).makes_tensors()) continue;
    if (const auto it = of.find(s.operands[0].value); it != of.end()) {
      const std::vector<bool> same = it->second;
      for (const std::string& made : s.results) of[made] = same;
    }
  }
  // Drop the removed domains from lists.
  for (Step& s : steps)
    if (s.kind == StepKind::kReorder || s.kind == StepKind::kSetAllocation || s.kind == StepKind::kRfactor)
      std::erase_if(s.operands, [](const StepOperand& o) { return o.domain == "gone"; });
}

bool fit_steps(Case& c) {
  if (!c.steps()) return true;
  std::vector<Step>& steps = c.module.step_lists[0].steps;
  const Bindings sizes = sizes_of(c.fusion(), c.inputs());
  Graph g = c.fusion();
  std::vector<Step> rewrites, schedule;
  for (const Step& s : steps) {
    if (!changes_fusion(s.kind))
      schedule.push_back(s);
    else if (schedule.empty() && !step_refusal(g, s))
      apply_step(g, s), rewrites.push_back(s);
  }
  apply(g, plan_resolution(c.fusion(), sizes, g));
  g = canonical_order(g);
  auto assigns = fitted_assigns(g, schedule);
  if (!assigns) return false;
  std::erase_if(schedule, is_assign);
  std::vector<Step> kept =
      assigns->empty() ? applicable(g, schedule) : applicable_in_segments(g, *std::move(assigns), schedule);
  steps = std::move(rewrites);
  steps.insert(steps.end(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
  return true;
}

}  // namespace fusebox::fuzz
