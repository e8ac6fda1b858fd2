// Random schedules for any fusion. Each step is drawn and asked of `step_refusal` before it is taken; a list that
// lowering refuses is repaired by leaving out the steps that the error names.
//
// Invariants: the same choices give the same steps; every step applied where it was drawn; what comes back either
// compiles, with what it compiled to, or is refused with a coded error.
//
//   GeneratedSteps s = generate_steps(random, f.graph, f.sizes);
//   s.steps, s.compiled                  // s.repairs: how often a list was refused on the way
#pragma once

#include <optional>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/focus.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "passes/pipeline/pipeline.h"

namespace fusebox::fuzz {

struct StepsOptions {
  size_t max_transforms = 5;
  uint32_t rewrites_one_in = 5;  // lists that start with rewrites; 0: none
  bool segments = true;          // `assign` steps
  bool plain = false;            // a thread for each element, which makes what it reduces alone
  Defects defects = {};          // of the compilation
  std::vector<BoundInput> inputs = {};
  Focus focus = {};
};

struct GeneratedSteps {
  std::vector<Step> steps;
  std::optional<Compiled> compiled;
  std::optional<Error> refusal;  // where it did not compile
  // A refusal that no list which is drawn as valid may get; it ends the draw, with the list that was refused.
  std::optional<Error> surprise;
  size_t repairs = 0;
};

GeneratedSteps generate_steps(RandomSource& random, const Graph& fusion, const Bindings& sizes,
                              const StepsOptions& options = {});

// One more step for a schedule that stands so far, of any kind that applies; nothing where none was found soon.
// `graph`: with the steps before it applied.
std::optional<Step> draw_step(RandomSource& random, const Graph& graph);

}  // namespace fusebox::fuzz
