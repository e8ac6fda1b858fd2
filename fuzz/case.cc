#include "fuzz/case.h"

namespace fusebox::fuzz {

DrawnCase generate_case(RandomSource& random, const CaseOptions& options) {
  DrawnCase drawn;
  GeneratedFusion f = generate_fusion(random, options.fusion);
  drawn.op_attempts = f.attempts;
  drawn.ops = f.accepted;
  InputsOptions inputs;
  inputs.special = random.one_in(options.special_one_in);
  inputs.integers = !inputs.special && random.one_in(options.integers_one_in);
  InputSpecs specs = generate_inputs(random, f.graph, f.sizes, inputs);
  const Bindings sizes = sizes_of(f.graph, specs);
  StepsOptions steps_options = options.steps;
  steps_options.inputs = bound_inputs(specs);
  GeneratedSteps steps = generate_steps(random, f.graph, sizes, steps_options);
  drawn.repairs = steps.repairs;
  drawn.refusal = std::move(steps.refusal);
  drawn.value.module.step_lists.push_back({"", f.graph.name, std::move(steps.steps)});
  drawn.value.module.graphs.push_back(std::move(f.graph));
  drawn.value.module.input_specs.push_back(std::move(specs));
  drawn.value.compiled = std::move(steps.compiled);
  return drawn;
}

DrawnCase generate_case(uint64_t seed, const CaseOptions& options) {
  RandomSource random(seed);
  DrawnCase drawn = generate_case(random, options);
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

}  // namespace fusebox::fuzz
