#include "fuzz/generate/case.h"

#include <algorithm>
#include <charconv>

namespace fusebox::fuzz {

DrawnCase generate_case(RandomSource& random, const CaseOptions& options, const Focus& focus) {
  DrawnCase drawn;
  FusionOptions fusion_options = options.fusion;
  fusion_options.focus = focus;
  GeneratedFusion f = generate_fusion(random, fusion_options);
  drawn.op_attempts = f.attempts;
  drawn.ops = f.accepted;
  InputsOptions inputs;
  // If a rewrite may apply, use values that it must not change.
  const bool has_edges =
      f.neighbours > 0 || !focus.ops.empty() || focus.form || !focus.unaries.empty() || !focus.integer_pairs.empty();
  inputs.special = random.one_in(options.special_one_in) || (has_edges && random.one_in(2)) ||
                   ((!focus.unaries.empty() || focus.rare == RareFocus::kTimesZero) && !random.one_in(4));
  if (focus.in_place) inputs.offset = focus.in_place->offset;
  inputs.shifted = focus.rare == RareFocus::kTwoWidths;
  inputs.is_far = focus.swizzle && focus.swizzle->is_far;
  inputs.ranges = f.ranges;
  inputs.integers = !inputs.special && random.one_in(options.integers_one_in);
  // Sums of equal signs in one thread show errors of a wrong summation order.
  if (f.sums_many && !random.one_in(4)) inputs.special = inputs.integers = false;
  InputSpecs specs = generate_inputs(random, f.graph, f.sizes, inputs);
  const Bindings sizes = sizes_of(f.graph, specs);
  StepsOptions steps_options = options.steps;
  steps_options.focus = focus;
  steps_options.inputs = bound_inputs(specs);
  if (f.neighbours > 0 || f.folds) steps_options.rewrites_one_in = std::min<uint32_t>(steps_options.rewrites_one_in, 2);
  if (!focus.rewrite.empty() && steps_options.rewrites_one_in > 0) steps_options.rewrites_one_in = 1;
  steps_options.plain = f.sums_many && random.one_in(2);
  GeneratedSteps steps = generate_steps(random, f.graph, sizes, steps_options);
  drawn.repairs = steps.repairs;
  drawn.refusal = std::move(steps.refusal);
  drawn.surprise = std::move(steps.surprise);
  drawn.value.module.step_lists.push_back({"", f.graph.name, std::move(steps.steps)});
  drawn.value.module.graphs.push_back(std::move(f.graph));
  drawn.value.module.input_specs.push_back(std::move(specs));
  drawn.value.compiled = std::move(steps.compiled);
  return drawn;
}

DrawnCase generate_case(uint64_t seed, const CaseOptions& options) {
  RandomSource random(seed);
  DrawnCase drawn = generate_case(random, options, focus_of(seed));
  drawn.value.seed = seed;
  return drawn;
}

std::string print_lineage(const Case& c) {
  std::string text = "seed " + std::to_string(c.seed) + "\n";
  for (const Mutation& m : c.lineage) {
    text += m.name;
    for (const std::string& p : m.parameters) text += " | " + p;
    text += "\n";
  }
  return text;
}

void parse_lineage(std::string_view text, Case& c) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text = text.substr(std::min(end + 1, text.size()));
    if (line.starts_with("seed ")) {
      std::from_chars(line.data() + 5, line.data() + line.size(), c.seed);
      continue;
    }
    if (line.empty()) continue;
    Mutation m;
    for (bool first = true;; first = false) {
      const size_t bar = std::min(line.find(" | "), line.size());
      std::string part(line.substr(0, bar));
      if (first)
        m.name = std::move(part);
      else
        m.parameters.push_back(std::move(part));
      if (bar == line.size()) break;
      line = line.substr(bar + 3);
    }
    c.lineage.push_back(std::move(m));
  }
}

}  // namespace fusebox::fuzz
