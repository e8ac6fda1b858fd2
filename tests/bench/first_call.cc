// The first call with new sizes, of a program that is planned already: from the arguments to everything that a launch needs, but for
// loading the kernel. `_by_host_program` interprets the host program, `_by_record` runs its launch record; both first ask
// whether the plan serves the sizes. `only_…` leave that out. The ratio of the two is what the record gains.
#include <benchmark/benchmark.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/host/launch_code.h"
#include "replay/cache/plan_memory.h"
#include "replay/data/file.h"
#include "replay/run/launch_machine.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

struct Program {
  Module module;
  CompileOptions options;
  Compiled compiled;
  std::vector<NamedKernel> kernels;
  std::vector<std::string> names;
  LaunchRecord record;
  std::vector<Argument> arguments;
  std::vector<uint64_t> addresses;

  explicit Program(const char* path, bool unfused) : module(parse_module(read_text_file(path))) {
    const Graph& f = main_graph(module);
    arguments = make_arguments(f, find_input_specs(module, f.name, "host"), {});
    options.inputs = bound_inputs(arguments);
    if (!unfused) options.steps = find_steps(module, f.name)->steps;
    compiled = compile(f, bind_sizes(f, options.inputs), options);
    for (size_t i = 0; i < compiled.kernels.size(); ++i) {
      names.push_back(compiled.segmentation.segments[i].name);
      kernels.push_back({names.back(), &compiled.kernels[i]});
    }
    record = *launch_code(compiled.host, names);
    for (const Argument& a : arguments)
      if (!a.is_scalar) addresses.push_back(reinterpret_cast<uint64_t>(a.tensor.data()));
  }
};

// softmax as one kernel; layer_norm with a kernel for each op.
const Program& program(int64_t which) {
  static const Program softmax("corpus/programs/softmax.fir", false),
      layer_norm("corpus/programs/layer_norm.fir", true);
  return which == 0 ? softmax : layer_norm;
}

void only_host_program(benchmark::State& state) {
  const Program& p = program(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(resolve_call(p.compiled.host, p.kernels, p.arguments, p.addresses));
}
BENCHMARK(only_host_program)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void only_record(benchmark::State& state) {
  const Program& p = program(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(evaluate_launch(p.record, p.arguments, p.addresses));
}
BENCHMARK(only_record)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

template <bool kByRecord>
void first_call(benchmark::State& state) {
  const Program& p = program(state.range(0));
  const Graph& f = main_graph(p.module);
  PlanMemory plans;
  const auto plan = [&] {
    CompileOptions options = p.options;
    options.inputs = bound_inputs(p.arguments);
    const Bindings sizes = bind_sizes(f, options.inputs);
    return plans.find_or_make({.fusion = f, .sizes = sizes, .options = options, .target = "the host"}, [&] {
      return KnownPlan{.compiled = std::make_shared<const Compiled>(p.compiled), .launch = p.record};
    });
  };
  plan();
  for (auto _ : state) {
    const auto known = plan();
    if constexpr (kByRecord)
      benchmark::DoNotOptimize(evaluate_launch(*known->launch, p.arguments, p.addresses));
    else
      benchmark::DoNotOptimize(resolve_call(known->compiled->host, p.kernels, p.arguments, p.addresses));
  }
}
BENCHMARK(first_call<false>)->Name("first_call_by_host_program")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(first_call<true>)->Name("first_call_by_record")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fusebox
