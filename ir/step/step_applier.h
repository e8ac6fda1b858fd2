// `StepApplier` applies steps to one graph, one after another. It keeps an index of the graph's names from step to
// step, so no step has to search the whole graph for a name.
//
//   StepApplier applier(g);
//   for (const Step& step : steps) applier.apply(step);   // the same as apply(g, step)
#pragma once

#include <optional>
#include <string_view>

#include "ir/graph/name_index.h"
#include "ir/step/apply.h"

namespace fusebox {

class StepApplier {
 public:
  // The graph must outlive this. Between steps, nothing else may rename or remove its values.
  explicit StepApplier(Graph& g, const Defects& defects = {}) : g_(g), defects_(defects), names_(g) {}

  // Throws as apply(g, step) does.
  void apply(const Step& step);
  // The first value of this name, or nothing.
  std::optional<ValueId> find(std::string_view name) { return names_.find(name); }

 private:
  Graph& g_;
  Defects defects_;
  NameIndex names_;
};

}  // namespace fusebox
