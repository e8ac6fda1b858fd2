// Applies steps to a graph.
//
// `apply` is deterministic. `inapplicable` is safe on any valid graph: it returns why a step does not apply, or
// nothing. `apply` never throws on a step that `inapplicable` accepted.
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
// A vector names std by its element's allocator, and std::apply would match it better than the span.
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
