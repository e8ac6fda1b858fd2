// The time of a decision: how long the automatic plan takes, and how long it takes from a fusion to lowered kernels, for
// fusions that schedulers take. `us_an_op` is the time for one op; a fusion of 20 ops should be planned in 2 ms and lowered
// in 10 ms, and one of 5,000 ops in 1 s and 5 s.
// The families stand in tests/support/families.h.
#include <benchmark/benchmark.h>

#include "ir/infer/bind.h"
#include "passes/automatic/plan_automatic.h"
#include "passes/pipeline/pipeline.h"
#include "passes/segment/segment.h"
#include "tests/support/families.h"

namespace fusebox {
namespace {

using testing::Family;
using testing::family_inputs;
using testing::fusion_of;
using enum testing::Family;

void plan(benchmark::State& state) {
  const Graph g = fusion_of(static_cast<Family>(state.range(0)), state.range(1));
  const Bindings sizes = bind_sizes(g, family_inputs());
  size_t segments = 0, unfused = 0;
  for (auto _ : state) {
    const AutomaticPlan p = plan_automatic(g, {.sizes = sizes, .memory = memory_classes(g, family_inputs())});
    segments = p.decisions.size();
    unfused = 0;
    for (const Decision& d : p.decisions) unfused += d.heuristics.scheduler == "unfused";
  }
  const PlanningWork work = plan_automatic(g, {.sizes = sizes, .memory = memory_classes(g, family_inputs())}).work;
  state.counters["steps"] = static_cast<double>(work.steps);
  state.counters["kernel_plans"] = static_cast<double>(work.kernel_plans);
  state.counters["ops"] = static_cast<double>(g[Graph::body()].ops.size());
  state.counters["segments"] = static_cast<double>(segments);
  state.counters["unfused"] = static_cast<double>(unfused);
}

void lowered(benchmark::State& state) {
  const Graph g = fusion_of(static_cast<Family>(state.range(0)), state.range(1));
  const Bindings sizes = bind_sizes(g, family_inputs());
  for (auto _ : state)
    benchmark::DoNotOptimize(compile(g, sizes, {.device = default_device(), .inputs = family_inputs()}));
}

#define FUSEBOX_SIZES                                                          \
  ArgsProduct({{kGates, kNorms, kSums, kMoves, kWide}, {20, 100, 1000, 5000}}) \
      ->ArgNames({"family", "ops"})                                            \
      ->Unit(benchmark::kMillisecond)                                          \
      ->MinTime(0.05)
BENCHMARK(plan)->FUSEBOX_SIZES;
BENCHMARK(lowered)->FUSEBOX_SIZES;

}  // namespace
}  // namespace fusebox
