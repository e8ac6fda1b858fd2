#include "passes/lower/lower.h"

#include "ir/graph/compact.h"
#include "passes/kernel/forward_local.h"
#include "passes/kernel/unroll_local.h"
#include "passes/lower/kernel_emitter.h"
#include "passes/plan/plan_stages.h"

namespace fusebox {

Lowered emit_kernel(const KernelPlan& plan, const EmitOptions& options) {
  KernelEmitter emitter(plan, options);
  emitter.run();
  Graph launch = emit_launch(plan, emitter.signature());
  std::vector<CheckNote> notes;
  if (options.explain) notes = emitter.check_notes();
  Graph finished = emitter.finish();
  forward_local(finished, plan.defects());
  unroll_local(finished);
  return {compacted(std::move(finished)), compacted(std::move(launch)), std::move(notes)};
}

Lowered lower(const Graph& scheduled, const LowerOptions& options) {
  return emit_kernel(plan_kernel(scheduled, {options.defects, options.sizes}), {options.index_bits, options.explain});
}

std::optional<Error> legal(const Graph& scheduled, const LowerOptions& options) {
  try {
    plan_refusable(scheduled, {options.defects, options.sizes});
    return std::nullopt;
  } catch (const Error& e) {
    return e;
  }
}

}  // namespace fusebox
