// The oracle that checks whether kernels are as simple as lowering promises.
#include <algorithm>

#include "fuzz/oracle/oracle.h"
#include "fuzz/oracle/tidy_kernel.h"
#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox::fuzz {
namespace {

std::optional<std::array<int64_t, 6>> constant_launch(const Graph& launch) {
  for (const Op& op : launch.ops) {
    if (op.kind != OpKind::kLaunch) continue;
    std::array<int64_t, 6> result;
    for (size_t i = 0; i < result.size(); ++i) {
      const auto n = constant_integer(launch, op.operands[i]);
      if (!n) return std::nullopt;
      result[i] = *n;
    }
    return result;
  }
  return std::nullopt;
}

// True if the kernel allocates a buffer of more than one element.
bool has_buffers(const Graph& kernel) {
  return std::any_of(kernel.ops.begin(), kernel.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kAllocate && constant_integer(kernel, op.operands[0]).value_or(0) > 1;
  });
}

}  // namespace

void tidy(OracleRun& run) {
  const Compiled* c = run.compiled();
  for (size_t k = 0; c && k < c->kernels.size(); ++k) {
    const Graph& kernel = c->kernels[k];
    if (c->segmentation.segments[k].executor != SegmentExecutor::kKernel) continue;
    const auto& moves = c->scheduled[k].transforms;
    const bool is_resized =
        std::any_of(moves.begin(), moves.end(), [](const Transform& t) { return t.kind == TransformKind::kResize; });
    auto found = find_untidy(
        kernel, {.launch = constant_launch(c->launches[k]), .is_resized = is_resized, .seed = run.subject().seed});
    // Buffers have the sizes that the schedule's facts state. Where a fact is broken, the loops of this case are others.
    const auto is_refused_by_fact = [&] {
      const auto& failure = run.scheduled().failure;
      return failure && failure->code == ErrorCode::kAssumptionFailed;
    };
    if (has_buffers(kernel) && !is_refused_by_fact()) {
      const Graph scheduled = canonical_order(c->scheduled[k]);
      const auto large = find_large_buffers(kernel, scheduled, rebind(run.fusion(), run.sizes(), scheduled));
      found.insert(found.end(), large.begin(), large.end());
    }
    for (const Untidy& u : found)
      run.report("tidy", u.check, std::string(row_of(kernel[u.op].kind).text), u.message + "\n" + print(kernel));
  }
}

}  // namespace fusebox::fuzz
