// A compiled program runs with any sizes that the fusion takes, not only those that it was compiled for.
#include "fuzz/mutate.h"
#include "fuzz/oracle.h"

namespace fusebox::fuzz {

void other_sizes(OracleRun& run) {
  const Compiled* c = run.compiled();
  // What was concretized holds for its own sizes alone.
  if (!c || !c->concretize.empty() || !run.scheduled().ok()) return;
  const Case& from = run.subject();
  RandomSource random(from.seed + from.lineage.size());
  constexpr int kTries = 4;
  for (int tries = 0; tries < kTries; ++tries) {
    const auto extent = draw_mutation(random, MutationKind::kExtent, from, from);
    if (!extent) return;
    auto changed = apply_mutation(from, *extent);
    if (!changed || changed->inputs() == from.inputs()) continue;
    // What was made for indices of 32 bits runs with sizes that keep within them.
    if (c->index_bits < choose_index_bits(c->concretized, sizes_of(c->concretized, changed->inputs()))) continue;
    changed->compiled = *c;
    OracleRun other(*changed, run.options());
    host_checks(other);
    aten(other);
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
