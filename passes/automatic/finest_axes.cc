#include "passes/automatic/finest_axes.h"

#include <algorithm>

#include "ir/graph/name_index.h"
#include "ir/infer/concretize.h"
#include "passes/automatic/two_passes.h"

namespace fusebox {

std::vector<Step> finest_axes_rewrites(const Graph& fusion, const std::vector<Step>& before, const Defects& defects) {
  constexpr std::string_view kOrder[] = {"finest_axes", "dead_code"};
  if (std::ranges::none_of(fusion.ops, [](const Op& op) { return op.kind == OpKind::kReshape; })) return {};
  return rewrites_led_by_first(fusion, before, kOrder, defects);
}

bool may_take_finest_axes(const Graph& fusion, const Graph& concretized, const AutomaticOptions& options) {
  const auto overwrites = [](const OutputRef& out) { return static_cast<bool>(out.alias); };
  if (has_symbolic_axes(fusion) && std::ranges::any_of(outputs(fusion), overwrites)) return false;
  const SizeClasses sizes(concretized, options.sizes, options.defects);
  for (uint32_t d = 0; d < concretized.domains.size(); ++d)
    if (sizes.of(DomainId(d)).most == 0) return false;
  return true;
}

bool has_finest_axes(std::span<const Step> steps) {
  return std::ranges::any_of(steps, [](const Step& step) {
    return step.kind == StepKind::kRewrite && step.attrs.string(AttrKey::kName) == "finest_axes";
  });
}

PlanCost cost_of(const AutomaticPlan& plan, const Graph& fusion, const AutomaticOptions& options) {
  PlanCost cost;
  NameIndex names(fusion);
  const SizeClasses sizes(fusion, options.sizes, options.defects);
  const auto bytes = [&](const Crossing& c) { return bytes_at_most(fusion, *names.find(c.value), sizes); };
  for (const PlannedSegment& p : plan.planned) {
    if (p.segment.executor == SegmentExecutor::kView) continue;
    ++cost.launches;
    for (const Crossing& c : p.segment.inputs) cost.bytes += bytes(c);
    for (const Crossing& c : p.segment.outputs) cost.bytes += bytes(c);
  }
  return cost;
}

}  // namespace fusebox
