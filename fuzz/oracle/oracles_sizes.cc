// The oracle that runs a compiled program with sizes and layouts other than those it was compiled for.
#include <algorithm>

#include "fuzz/mutate/mutate.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

// For the case's own steps and inputs.
CompileOptions options_of(const Case& c, const Defects& defects) {
  CompileOptions options{.inputs = bound_inputs(c.inputs()), .defects = defects, .infer = infer_by_aten()};
  if (c.steps()) options.steps = *c.steps();
  return options;
}

// Whether the case needs 64-bit indices when compiled for its own sizes and strides.
bool needs_wide_indices(const Case& c, const Defects& defects) {
  const CompileOptions options = options_of(c, defects);
  try {
    return compile(c.fusion(), sizes_of(c.fusion(), c.inputs()), options).index_bits == 64;
  } catch (const Error&) {
    return false;
  }
}

// Whether these sizes need wider indices than the program has. A size that the program refuses needs none: the launch says so.
bool needs_64_bits(const Compiled& c, const Case& changed) {
  try {
    return c.index_bits < choose_index_bits(c.concretized, sizes_of(c.concretized, changed.inputs()));
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return false;
  }
}

bool has_vectors(const Compiled& c) {
  const auto is_vector = [](const IterDomain& d) { return d.parallel == ParallelType::kVectorize; };
  return std::ranges::any_of(c.scheduled, [&](const Graph& g) { return std::ranges::any_of(g.domains, is_vector); });
}

// Runs the program with the changed inputs, which it serves. Returns false if the launch refused them.
bool judge_with(OracleRun& run, const Compiled& c, Case changed, const std::string& how) {
  changed.compiled = c;
  OracleRun other(changed, run.options());
  host_checks(other);
  aten(other);
  // Sizes do not tell everything: a few elements with a large stride can exceed 32 bits. The compiler finds that in
  // the kernels, which takes long, so ask it only after an index overflow.
  const auto is_overflow = [](const Finding& f) { return f.signature.check == code_text(ErrorCode::kIndexOverflow); };
  if (c.index_bits == 32 && std::ranges::any_of(other.findings, is_overflow) &&
      needs_wide_indices(changed, run.options().defects))
    return true;
  for (Finding& f : other.findings)
    run.findings.push_back(
        {{"other-sizes", f.signature.check, f.signature.place}, "run with " + how + ": " + f.message});
  run.compared += other.compared;
  run.ambiguous += other.ambiguous;
  run.unconstrained += other.unconstrained;
  return other.scheduled().ok() || !is_launch_refusal(other.scheduled().failure->code);
}

constexpr int kTries = 4;

// Half of the extents lie a power of two from what they were: what a launch checks of divisors then holds mostly, and what it
// should have checked beside that does not.
std::optional<Mutation> draw_extent(RandomSource& random, const Case& from) {
  auto drawn = draw_mutation(random, MutationKind::kExtent, from, from);
  if (!drawn || random.one_in(2)) return drawn;
  constexpr uint64_t kSteps = 7;
  const ValueId size = *find_value(from.fusion(), drawn->parameters[0]);
  const auto now = evaluate_integer(from.fusion(), size, sizes_of(from.fusion(), from.inputs()));
  const int64_t step = int64_t{1} << random.below(kSteps);
  if (now && (*now <= step || random.one_in(2)))
    drawn->parameters[1] = std::to_string(*now + step);
  else if (now)
    drawn->parameters[1] = std::to_string(*now - step);
  return drawn;
}

// Whether the program is one for these inputs too. A concretized program may not be.
bool serves_inputs(const Compiled& c, const Case& changed, const Defects& defects) {
  const CompileOptions options = options_of(changed, defects);
  try {
    return serves(c, changed.fusion(), sizes_of(changed.fusion(), changed.inputs()), options);
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return false;  // the inputs do not fit the program
  }
}

// A launch refuses sizes that its kernels do not serve. That costs little, so another size is tried.
void judge_extent(OracleRun& run, const Compiled& c, RandomSource& random) {
  const Case& from = run.subject();
  for (int tries = 0; tries < kTries; ++tries) {
    const auto extent = draw_extent(random, from);
    if (!extent) return;
    auto changed = apply_mutation(from, *extent);
    if (!changed || changed->inputs() == from.inputs()) continue;
    // A program with 32-bit indices must only run with sizes that fit.
    if (needs_64_bits(c, *changed)) continue;
    if (!c.concretize.empty() && !serves_inputs(c, *changed, run.options().defects)) continue;
    if (judge_with(run, c, *std::move(changed), "%" + extent->parameters[0] + " = " + extent->parameters[1])) return;
  }
}

// The launch refuses tensors at which a vector could not start.
void judge_layout(OracleRun& run, const Compiled& c, RandomSource& random) {
  const Case& from = run.subject();
  for (int tries = 0; tries < kTries; ++tries) {
    const auto layout = draw_mutation(random, MutationKind::kLayout, from, from);
    if (!layout) return;
    auto changed = apply_mutation(from, *layout);
    if (!changed || changed->inputs() == from.inputs()) continue;
    if (!serves_inputs(c, *changed, run.options().defects)) continue;
    if (judge_with(run, c, *std::move(changed), layout->parameters[0] + " as " + layout->parameters[1])) return;
  }
}

}  // namespace

void other_sizes(OracleRun& run) {
  const Compiled* c = run.compiled();
  if (!c || !run.scheduled().ok()) return;
  RandomSource random(run.subject().seed + run.subject().lineage.size());
  judge_extent(run, *c, random);
  if (has_vectors(*c)) judge_layout(run, *c, random);
}

}  // namespace fusebox::fuzz
