// Applies any list of steps: schedule steps (ir/step/apply.h), and `rewrite` steps, which run a pass. Code that runs,
// shows or records a program applies its steps with these functions, because ir/step/apply.h refuses rewrites.
//
// Law: `apply_step` applies a step that `step_refusal` does not refuse. Otherwise it throws the Error that
// `step_refusal` describes.
//
//   rewrite name "cast_pairs"          // rewrites come first: they need a fusion that no step has scheduled
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
// A rewrite that changes the graph renumbers it and keeps names. A rewrite that changes nothing leaves the graph as it
// is.
void apply_step(Graph& g, const Step& step, const Defects& defects = {});
// Whether the step was applied. If `step_refusal` refuses the step, the graph stays as it is.
bool try_step(Graph& g, const Step& step);
void apply_steps(Graph& g, std::span<const Step> steps, const Defects& defects = {});

// Whether steps of this kind change the fusion itself, and so come before all others.
inline bool changes_fusion(StepKind kind) { return kind == StepKind::kRewrite || kind == StepKind::kPrecision; }
// The number of steps at the start of the list that change the fusion itself: `precision` steps, then rewrites. Throws
// kStepNotApplicable if one of them stands behind a step of another kind, because each segment would understand such a
// list differently, or if a `precision` step stands behind a rewrite, because it speaks of the program as it was written.
size_t leading_rewrites(std::span<const Step> steps);
// The step that makes every op that has a fast form fast, or exact. Steps behind it may say otherwise for single ops.
Step precision_step(bool fast);
// The program with its `precision` steps applied: what a run is judged by. Steps that do not apply are left out.
Graph with_precision(const Graph& fusion, std::span<const Step> steps);
// The steps that resolve the symbolic axes of `g`, which rewrites made from `fusion`; the bindings are those of `fusion`. Brings
// `g` into canonical order first if it has such axes. Axes with a choice, and scalars that inference finds equal, depend on the
// order of the ops, so whoever resolves axes as `compile` does must ask here. Throws as `plan_concretize`.
std::vector<Step> plan_resolution(const Graph& fusion, const Bindings& bindings, Graph& g, const Defects& defects = {});
// Carries the bindings of a graph over to a graph that rewrites made from it. Sizes and inputs are found by name; other
// scalars are computed from them.
Bindings rebind(const Graph& from, const Bindings& bindings, const Graph& to);

// The same for any number of graphs that are made from parts of one graph. The cost of each grows with its own size.
class Rebinder {
 public:
  // The graph and the bindings must outlive the rebinder.
  Rebinder(const Graph& from, const Bindings& bindings);
  Bindings to(const Graph& g) const;

 private:
  const Bindings& bindings_;
  std::unordered_map<std::string_view, size_t> given_;  // sizes and inputs, by name
};

}  // namespace fusebox
