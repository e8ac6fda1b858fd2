#include "passes/pipeline/tune.h"

#include <algorithm>
#include <set>
#include <span>

#include "passes/schedule/neighbours.h"

namespace fusebox {

namespace {

class Search {
 public:
  Search(const Graph& fusion, const Bindings& bindings, const CompileOptions& options, const MeasureProgram& measure,
         const TuneOptions& how)
      : fusion_(fusion), bindings_(bindings), options_(options), measure_(measure), how_(how) {
    options_.others = true;
  }

  Tuned run() {
    tuned_.best = compile(fusion_, bindings_, options_);
    if (!tuned_.best.automatic)
      throw Error(
          ErrorCode::kUsage,
          "the program has a schedule, so no scheduler chooses anything that could be tuned; leave out its steps",
          "@" + fusion_.name);
    const auto first = measure_(tuned_.best);
    if (!first)
      throw Error(ErrorCode::kUsage, "the program cannot be timed, so it cannot be tuned", "@" + fusion_.name);
    best_ = *first;
    const std::vector<Decision> decisions = tuned_.best.automatic->decisions;
    for (const Decision& d : decisions)
      if (!neighbours(d.heuristics).empty() || !d.others.empty()) search(d);
    return std::move(tuned_);
  }

 private:
  void search(const Decision& d) {
    TunedSegment result{d.segment, d.heuristics, d.heuristics, best_, best_, 0};
    std::set<std::string> seen{text(d.heuristics)};
    const auto is_better = [&](std::span<const Heuristics> among) {
      bool found = false;
      for (const Heuristics& next : among)
        if (result.tries < how_.most_tries && seen.insert(text(next)).second) found |= attempt(d.segment, next, result);
      return found;
    };
    is_better(d.others);
    while (is_better(neighbours(result.best))) {
    }
    options_.heuristics[d.segment] = {result.chosen, result.best};
    result.after = best_;
    tuned_.segments.push_back(std::move(result));
  }

  // Measures the plan with these heuristics. Returns whether it is the best so far.
  bool attempt(const std::string& segment, const Heuristics& next, TunedSegment& result) {
    options_.heuristics[segment] = {result.chosen, next};
    Compiled made = compile(fusion_, bindings_, options_);
    const auto decision = std::ranges::find(made.automatic->decisions, segment, &Decision::segment);
    if (decision == made.automatic->decisions.end() || decision->heuristics != next) return false;
    const auto measured = measure_(made);
    if (!measured) return false;
    ++result.tries;
    if (*measured >= best_ * (1 - how_.least_gain)) return false;
    best_ = *measured;
    result.best = next;
    tuned_.best = std::move(made);
    return true;
  }

  const Graph& fusion_;
  const Bindings& bindings_;
  CompileOptions options_;
  const MeasureProgram& measure_;
  const TuneOptions& how_;
  Tuned tuned_;
  double best_ = 0;
};

}  // namespace

Tuned tune(const Graph& fusion, const Bindings& bindings, const CompileOptions& options, const MeasureProgram& measure,
           const TuneOptions& how) {
  return Search(fusion, bindings, options, measure, how).run();
}

}  // namespace fusebox
