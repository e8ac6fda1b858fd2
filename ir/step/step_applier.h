// `StepApplier`: applies steps to one graph, one after another. What it knows of the graph's names serves each of them,
// so that a list costs as much as its steps and not as much as its steps times the graph.
//
//   StepApplier applier(g);
//   for (const Step& step : steps) applier.apply(step);   // the same as apply(g, step)
#pragma once

#include "ir/graph/name_index.h"
#include "ir/step/apply.h"

namespace fusebox {

class StepApplier {
 public:
  // The graph outlives this; between steps nothing else renames values of it or takes them out.
  explicit StepApplier(Graph& g, const Defects& defects = {}) : g_(g), defects_(defects), names_(g) {}

  // Throws as apply(g, step) does.
  void apply(const Step& step);

 private:
  Graph& g_;
  Defects defects_;
  NameIndex names_;
};

}  // namespace fusebox
