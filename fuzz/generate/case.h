// A fuzz case: a module that holds one fusion, its schedule and its inputs, and how it came to be.
//
// Invariants: the case alone says what runs; the lineage explains it, and applied to the seed's own case it gives the
// same case again (mutate.h).
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

// One edit, with all that it needs: a row of mutation_table.inc and its parameters.
struct Mutation {
  std::string name;
  std::vector<std::string> parameters;
  bool operator==(const Mutation&) const = default;
};

struct Case {
  Module module;
  uint64_t seed = 0;
  std::vector<Mutation> lineage;
  // What the module compiles to without defects but those of the options; none: not known yet.
  std::optional<Compiled> compiled;

  const Graph& fusion() const { return module.graphs[0]; }
  // None: the unfused plan.
  const std::vector<Step>* steps() const { return module.step_lists.empty() ? nullptr : &module.step_lists[0].steps; }
  const InputSpecs& inputs() const { return module.input_specs[0]; }
};

struct CaseOptions {
  FusionOptions fusion = {};  // their foci are those of the seed
  StepsOptions steps = {};
  uint32_t special_one_in = 4;   // cases whose values are boundary values
  uint32_t integers_one_in = 3;  // of the others: cases of whole numbers
};

struct DrawnCase {
  Case value;
  std::optional<Error> refusal;   // of the schedule: the case cannot run
  std::optional<Error> surprise;  // the same, where nothing that is drawn as valid may be refused so
  size_t op_attempts = 0, ops = 0, repairs = 0;
};
DrawnCase generate_case(uint64_t seed, const CaseOptions& options);
DrawnCase generate_case(RandomSource& random, const CaseOptions& options, const Focus& focus = {});

// A line for the seed, then one for each mutation, its parts with ` | ` between.
std::string print_lineage(const Case& c);
// The seed and the lineage that a text names, into the case.
void parse_lineage(std::string_view text, Case& c);

}  // namespace fusebox::fuzz
