// A fuzz case: a module with one fusion, its schedule and its inputs, and the record of its origin.
//
// Invariants: the module alone determines what runs. The lineage explains it: applied to the seed's own case, it gives
// the same case (mutate.h).
//
//   Case c = generate_case(7, {});
//   print(c.module), print_lineage(c)         // `seed 7`, then a line for each mutation
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/generate/generate_fusion.h"
#include "fuzz/generate/generate_inputs.h"
#include "fuzz/generate/generate_steps.h"
#include "ir/module/module.h"

namespace fusebox::fuzz {

// One edit: a row of mutation_table.inc with all its parameters.
struct Mutation {
  std::string name;
  std::vector<std::string> parameters;
  bool operator==(const Mutation&) const = default;
};

struct Case {
  Module module;
  uint64_t seed = 0;
  std::vector<Mutation> lineage;
  // The compiled module, with the defects of the options only; empty if not known yet.
  std::optional<Compiled> compiled;

  const Graph& fusion() const { return module.graphs[0]; }
  // nullptr: the unfused plan.
  const std::vector<Step>* steps() const { return module.step_lists.empty() ? nullptr : &module.step_lists[0].steps; }
  const InputSpecs& inputs() const { return module.input_specs[0]; }
};

struct CaseOptions {
  FusionOptions fusion = {};  // generate_case(seed) sets the foci
  StepsOptions steps = {};
  uint32_t special_one_in = 4;   // cases with boundary values
  uint32_t integers_one_in = 3;  // of the other cases: whole numbers
};

// The options of campaigns: with fusions as models have them.
inline CaseOptions campaign_cases() {
  CaseOptions options;
  options.fusion.model_one_in = 12;
  return options;
}

struct DrawnCase {
  Case value;
  std::optional<Error> refusal;   // the schedule was refused, so the case cannot run
  std::optional<Error> surprise;  // a refusal that drawn cases must not meet
  size_t op_attempts = 0, ops = 0, repairs = 0;
};
DrawnCase generate_case(uint64_t seed, const CaseOptions& options);
DrawnCase generate_case(RandomSource& random, const CaseOptions& options, const Focus& focus = {});

// Prints a line for the seed and one for each mutation. ` | ` separates a mutation's parts.
std::string print_lineage(const Case& c);
// Reads a seed and a lineage from text into the case.
void parse_lineage(std::string_view text, Case& c);

}  // namespace fusebox::fuzz
