// A search among the neighbours of the schedulers' heuristics, by a measure of the compiled programs.
//
// The search goes from segment to segment of the automatic plan. It compiles the other choices that the segment's scheduler
// names, and the neighbours of its heuristics, measures each, and goes on from the best one, until none is better. How the fusion is cut does not change.
//
// Invariants: a program is measured only if it is the plan with the heuristics that were asked for. The result follows
// from the arguments and the measure alone. The steps of the best program make it again without any search.
//
//   Tuned t = tune(fusion, bindings, options, [&](const Compiled& c) { return median_us(c); });
//   t.best.automatic->steps
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "passes/pipeline/pipeline.h"

namespace fusebox {

// Smaller is better. Nothing: the program cannot be run, for example because a launch is too large for the device.
using MeasureProgram = std::function<std::optional<double>(const Compiled&)>;

struct TuneOptions {
  int most_tries = 64;       // measured neighbours of a segment's heuristics
  double least_gain = 0.01;  // of the measure: less counts as the same
};

struct TunedSegment {
  std::string segment;
  Heuristics chosen, best;       // by the scheduler, and by the search
  double before = 0, after = 0;  // the measure of the whole program before and after the search in this segment
  int tries = 0;                 // neighbours that were measured
};

struct Tuned {
  Compiled best;
  std::vector<TunedSegment> segments;  // in the order of the plan's decisions; segments without heuristics are left out
};

// Throws what `compile` throws, and kUsage if the options or their steps leave no choice to schedulers, or if the plan as
// they chose it has no measure.
Tuned tune(const Graph& fusion, const Bindings& bindings, const CompileOptions& options, const MeasureProgram& measure,
           const TuneOptions& how = {});

}  // namespace fusebox
