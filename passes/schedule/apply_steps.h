// Applying any list of steps: those of ir/module/step.h, and `rewrite`, which runs a pass. What runs a program, shows
// it or records it applies steps by these functions; ir/module/step.h alone refuses rewrites.
//
// Law: `apply_step` does what `step_refusal` does not refuse, and throws the Error that it describes otherwise.
//
//   rewrite name "cast_pairs"          // first: they need a fusion that no step has scheduled
//   split %y.i0 by 128 -> o, t
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/module/step.h"
#include "ir/scalar/scalar.h"
#include "ir/step/apply.h"

namespace fusebox {

// Safe on any valid graph.
std::optional<StepRefusal> step_refusal(const Graph& g, const Step& step);
// A rewrite that changes nothing leaves the graph as it is; one that does renumbers it, and keeps names.
void apply_step(Graph& g, const Step& step, const Defects& defects = {});
// Whether the step applies; where `step_refusal` refuses it, the graph stays as it is.
bool try_step(Graph& g, const Step& step);
void apply_steps(Graph& g, std::span<const Step> steps, const Defects& defects = {});

// How many rewrites the list starts with. Throws kStepNotApplicable if one stands after another kind of step: such a
// list means something else to each segment.
size_t leading_rewrites(std::span<const Step> steps);
// The bindings of a graph for one that rewrites made of it: sizes and inputs by name, other scalars computed of them.
Bindings rebind(const Graph& from, const Bindings& bindings, const Graph& to);

// The same for any number of graphs that are made of parts of one: each costs as much as it is large itself.
class Rebinder {
 public:
  // Both outlive this.
  Rebinder(const Graph& from, const Bindings& bindings);
  Bindings to(const Graph& g) const;

 private:
  const Bindings& bindings_;
  std::unordered_map<std::string_view, size_t> given_;  // sizes and inputs, by name
};

}  // namespace fusebox
