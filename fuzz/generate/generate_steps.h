// Random schedules for any fusion. `step_refusal` must accept each drawn step. If lowering refuses the list, it is
// repaired by removing the steps that the error names.
//
// Invariants: the same choices give the same steps; every step applied when it was drawn; the resulting list either
// compiles, and the compiled module comes with it, or is refused with a coded error, unless `compiles` ended the draw.
//
//   GeneratedSteps s = generate_steps(random, f.graph, f.sizes);
//   s.steps, s.compiled                  // s.repairs: how often a list was refused before
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/focus.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "passes/pipeline/pipeline.h"

namespace fusebox::fuzz {

struct StepsOptions {
  size_t max_transforms = 5;
  uint32_t rewrites_one_in = 5;  // lists that begin with rewrites; 0: none
  bool segments = true;          // `assign` steps
  bool plain = false;            // a thread for each element of the result, which reduces alone
  Defects defects = {};          // for compiling
  std::vector<BoundInput> inputs = {};
  Focus focus = {};
  // Called before each compilation; false ends the draw with the list as it is. May be empty.
  std::function<bool()> compiles = {};
};

struct GeneratedSteps {
  std::vector<Step> steps;
  std::optional<Compiled> compiled;
  std::optional<Error> refusal;  // set if the list did not compile
  // A refusal that drawn lists must not meet. It ends the draw; `steps` is the refused list.
  std::optional<Error> surprise;
  size_t repairs = 0;
};

GeneratedSteps generate_steps(RandomSource& random, const Graph& fusion, const Bindings& sizes,
                              const StepsOptions& options = {});

// One more random step of any kind that applies after the given ones, or nothing if none is found soon. `graph`: the
// fusion after these steps.
std::optional<Step> draw_step(RandomSource& random, const Graph& graph);

// The results of ops that move elements, each with an operand that an op makes: `set_loop_domain` may connect them.
std::vector<std::pair<std::string, std::string>> moved_pairs(const Graph& graph);

}  // namespace fusebox::fuzz
