// The cost of one small case for a fuzzer: 3 ops, 4 steps, 200 elements, from building the graph to comparing the
// result with ATen. Every stage starts anew. `whole` is the figure to watch; the others are its parts, each beginning
// where the previous one ended. `peer`: ATen evaluates the same three ops.
//
// Also the cost of lowering per op, by the length of a chain of pointwise ops with 4 transforms each.
#include <benchmark/benchmark.h>
#include <cmath>

#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/module/step.h"
#include "ir/scalar/numeric.h"
#include "ir/step/apply.h"
#include "ir/verify/verify.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

// y = neg(x·w + x): 3 ops, one kernel, 20 × 10 elements, a thread for a row.
Graph small_fusion() {
  Graph g = fusion("small");
  const ValueId m = size(g, "m"), n = size(g, "n");
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n}), w = input(g, "w", Dtype::kFloat, {m, n});
  const ValueId a = mul(g, x, w, "a"), b = add(g, a, x, "b");
  output(g, unary(g, OpKind::kNeg, b, "y"));
  return g;
}

Step parallelize(std::string_view tensor, std::string_view domain, ParallelType type) {
  Step s{StepKind::kParallelize, {StepOperand::domain_of(tensor, domain)}, {}, {}};
  s.attrs.set_enum(AttrKey::kParallel, type);
  return s;
}

std::vector<Step> small_steps() {
  return {{StepKind::kSplit, {StepOperand::domain_of("y", "i1"), StepOperand::number(4)}, {"o", "u"}, {}},
          {StepKind::kTransformLike, {StepOperand::of("y")}, {}, {}},
          parallelize("y", "i0", ParallelType::kBlockX),
          {StepKind::kInlineMost, {}, {}, {}}};
}

std::vector<Argument> small_arguments() {
  std::vector<Argument> result;
  for (int k = 0; k < 2; ++k) {
    TensorData t = allocate_tensor(Dtype::kFloat, {20, 10});
    for (int64_t i = 0; i < 200; ++i)
      store_element(t, i, from_double(Dtype::kFloat, std::sin(static_cast<double>(i + 7 * k))));
    result.push_back(Argument::of(t));
  }
  return result;
}

void whole(benchmark::State& state) {
  const AtenApi& aten = load_aten();
  const auto arguments = small_arguments();
  benchmark::DoNotOptimize(aten.evaluate(small_fusion(), arguments));  // the first call starts ATen, about a second
  for (auto _ : state) {
    Run run;
    run.fusion = small_fusion();
    verify(run.fusion);
    const Bindings bindings = bind_sizes(run.fusion, bound_inputs(arguments));
    run.compiled = compile(run.fusion, bindings, {.steps = small_steps()});
    execute(run, arguments, {.executor = Executor::kHost});
    const Evaluation e = aten.evaluate(run.fusion, arguments);
    if (!compare(run.outputs[0].value.tensor, e.outputs[0], 1).ok) state.SkipWithError("the result is wrong");
  }
}
BENCHMARK(whole)->Unit(benchmark::kMicrosecond);

void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(small_fusion());
}
BENCHMARK(build)->Unit(benchmark::kMicrosecond);

void schedule(benchmark::State& state) {
  const Graph g = small_fusion();
  for (auto _ : state) {
    Graph copy = g;
    const std::vector<Step> steps = small_steps();
    apply(copy, steps);
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(schedule)->Unit(benchmark::kMicrosecond);

void lowering(benchmark::State& state) {
  Graph g = small_fusion();
  const std::vector<Step> steps = small_steps();
  apply(g, steps);
  for (auto _ : state) benchmark::DoNotOptimize(lower(g));
}
BENCHMARK(lowering)->Unit(benchmark::kMicrosecond);

void compilation(benchmark::State& state) {
  const Graph g = small_fusion();
  const auto arguments = small_arguments();
  const Bindings bindings = bind_sizes(g, bound_inputs(arguments));
  for (auto _ : state) benchmark::DoNotOptimize(compile(g, bindings, {.steps = small_steps()}));
}
BENCHMARK(compilation)->Unit(benchmark::kMicrosecond);

void host_run(benchmark::State& state) {
  Run run;
  run.fusion = small_fusion();
  const auto arguments = small_arguments();
  run.compiled = compile(run.fusion, bind_sizes(run.fusion, bound_inputs(arguments)), {.steps = small_steps()});
  for (auto _ : state) {
    Run again = run;
    execute(again, arguments, {.executor = Executor::kHost});
    benchmark::DoNotOptimize(again);
  }
}
BENCHMARK(host_run)->Unit(benchmark::kMicrosecond);

void aten_peer(benchmark::State& state) {
  const AtenApi& aten = load_aten();
  const Graph g = small_fusion();
  const auto arguments = small_arguments();
  for (auto _ : state) benchmark::DoNotOptimize(aten.evaluate(g, arguments));
}
BENCHMARK(aten_peer)->Unit(benchmark::kMicrosecond);

// A chain of pointwise ops over [m, n], each tensor merged, split twice and reordered, all inlined into one nest.
Graph chain(int length) {
  Graph g = fusion("chain");
  const ValueId m = size(g, "m"), n = size(g, "n");
  ValueId v = input(g, "x", Dtype::kFloat, {m, n});
  for (int i = 0; i < length; ++i) v = unary(g, OpKind::kNeg, v, "t" + std::to_string(i));
  output(g, v);
  const std::string last = "t" + std::to_string(length - 1);
  std::vector<Step> steps = {
      {StepKind::kMerge, {StepOperand::domain_of(last, "i0"), StepOperand::domain_of(last, "i1")}, {"f"}, {}},
      {StepKind::kSplit, {StepOperand::domain_of(last, "f"), StepOperand::number(4)}, {"o", "u"}, {}},
      {StepKind::kSplit, {StepOperand::domain_of(last, "o"), StepOperand::number(128)}, {"b", "t"}, {}},
      {StepKind::kReorder,
       {StepOperand::of(last), StepOperand::domain_of(last, "b"), StepOperand::domain_of(last, "u"),
        StepOperand::domain_of(last, "t")},
       {},
       {}},
      {StepKind::kTransformLike, {StepOperand::of(last)}, {}, {}},
      parallelize(last, "b", ParallelType::kGridX),
      parallelize(last, "t", ParallelType::kBlockX),
      {StepKind::kParallelizeLike, {StepOperand::of(last)}, {}, {}},
  };
  steps.push_back({StepKind::kInlineMost, {}, {}, {}});
  apply(g, steps);
  return g;
}

void lower_chain(benchmark::State& state) {
  const int length = static_cast<int>(state.range(0));
  const Graph g = chain(length);
  for (auto _ : state) benchmark::DoNotOptimize(lower(g));
  state.counters["us_a_node"] = benchmark::Counter(
      static_cast<double>(length) * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(lower_chain)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fusebox
