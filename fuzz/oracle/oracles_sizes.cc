// The oracle that runs a compiled program with sizes other than those it was compiled for.
#include <algorithm>

#include "fuzz/mutate/mutate.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

// Whether the case needs 64-bit indices when compiled for its own sizes and strides.
bool needs_wide_indices(const Case& c, const Defects& defects) {
  CompileOptions options{.inputs = bound_inputs(c.inputs()), .defects = defects};
  if (c.steps()) options.steps = *c.steps();
  try {
    return compile(c.fusion(), sizes_of(c.fusion(), c.inputs()), options).index_bits == 64;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void other_sizes(OracleRun& run) {
  const Compiled* c = run.compiled();
  // A concretized program is valid only for its own sizes.
  if (!c || !c->concretize.empty() || !run.scheduled().ok()) return;
  const Case& from = run.subject();
  RandomSource random(from.seed + from.lineage.size());
  constexpr int kTries = 4;
  for (int tries = 0; tries < kTries; ++tries) {
    const auto extent = draw_mutation(random, MutationKind::kExtent, from, from);
    if (!extent) return;
    auto changed = apply_mutation(from, *extent);
    if (!changed || changed->inputs() == from.inputs()) continue;
    // A program with 32-bit indices must only run with sizes that fit.
    if (c->index_bits < choose_index_bits(c->concretized, sizes_of(c->concretized, changed->inputs()))) continue;
    changed->compiled = *c;
    OracleRun other(*changed, run.options());
    host_checks(other);
    aten(other);
    // Sizes do not tell everything: a few elements with a large stride can exceed 32 bits. The compiler finds that in
    // the kernels, which takes long, so ask it only after an index overflow.
    const auto is_overflow = [](const Finding& f) { return f.signature.check == code_text(ErrorCode::kIndexOverflow); };
    if (c->index_bits == 32 && std::ranges::any_of(other.findings, is_overflow) &&
        needs_wide_indices(*changed, run.options().defects))
      return;
    for (Finding& f : other.findings)
      run.findings.push_back({{"other-sizes", f.signature.check, f.signature.place},
                              "run with %" + extent->parameters[0] + " = " + extent->parameters[1] + ": " + f.message});
    run.compared += other.compared;
    run.ambiguous += other.ambiguous;
    run.unconstrained += other.unconstrained;
    return;
  }
}

}  // namespace fusebox::fuzz
