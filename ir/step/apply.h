// Applies steps to a graph.
//
// Invariants: `apply` is deterministic. `inapplicable` takes any valid graph. If it returns nothing for a step, `apply`
// of this step does not throw.
//
//   const Step step = parse_step("split %y.i1 by 128 -> o, t");
//   if (!inapplicable(g, step)) apply(g, step);
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/module/step.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

// Why a step does not apply, or nothing.
struct StepRefusal {
  ErrorCode code;
  std::string message;
  std::string place;
};
std::optional<StepRefusal> inapplicable(const Graph& g, const Step& step);
inline bool is_applicable(const Graph& g, const Step& step) { return !inapplicable(g, step); }
// Applies a step, or throws the Error that `inapplicable` describes. A math graph becomes a scheduled one with the
// first schedule step.
void apply(Graph& g, const Step& step, const Defects& defects = {});
void apply(Graph& g, std::span<const Step> steps, const Defects& defects = {});
// For a std::vector, argument-dependent lookup also finds std::apply, which matches a vector better than the span does.
inline void apply(Graph& g, const std::vector<Step>& steps, const Defects& defects = {}) {
  apply(g, std::span<const Step>(steps), defects);
}
inline void apply(Graph& g, std::vector<Step>& steps, const Defects& defects = {}) {
  apply(g, std::span<const Step>(steps), defects);
}
inline void apply(Graph& g, std::vector<Step>&& steps, const Defects& defects = {}) {
  apply(g, std::span<const Step>(steps), defects);
}

}  // namespace fusebox
