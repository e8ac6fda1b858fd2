// From a call to a program that is ready to launch: planned and compiled, or taken from the cache on disk. Without a GPU
// the last step, loading the binary into the driver, is missing in both.
//
// With a GPU, `new_process` starts processes that make their CUDA context, then plan, load and launch: with an empty folder, so that
// NVRTC compiles, and with the record on disk. It prints both, and their ratio.
//
//   bench_cache                            ratios are the counters `cold_over_disk`
//   bench_cache --child FOLDER             one such process: prints the microseconds from the call to the end of the launch
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <unistd.h>

#include "codegen/cuda.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "replay/cache/folder_store.h"
#include "replay/cache/fusion_cache.h"
#include "replay/data/file.h"
#include "replay/device/device.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

struct Program {
  Module module;
  CompileOptions options;
  Bindings sizes;
  FusionRequest request() const {
    return {.fusion = module.graphs[0], .bindings = sizes, .options = options, .target = "cuda sm_90a"};
  }
};

const Program& softmax() {
  static const Program p = [] {
    Program made;
    made.module = parse_module(read_text_file("corpus/programs/softmax.fir"));
    const Graph& f = made.module.graphs[0];
    made.options.inputs = bound_inputs(make_arguments(f, find_input_specs(made.module, f.name, "host"), {}));
    made.options.steps = made.module.step_lists[0].steps;
    made.options.digest_plans = true;
    made.sizes = bind_sizes(f, made.options.inputs);
    return made;
  }();
  return p;
}

// The texts and requests of a program's kernels.
std::vector<ImageRequest> requests(const Compiled& c) {
  std::vector<ImageRequest> all;
  for (const Graph& k : c.kernels)
    if (!k.ops.empty()) all.push_back(image_request(k, emit_cuda(k), "sm_90a"));
  return all;
}

struct Folder {
  std::string path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fusebox-cache-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

void planned(benchmark::State& state) {
  const Program& p = softmax();
  for (auto _ : state) benchmark::DoNotOptimize(plan_fusion(nullptr, p.request()));
}
BENCHMARK(planned)->Unit(benchmark::kMillisecond);

void planned_and_compiled(benchmark::State& state) {
  const Program& p = softmax();
  try {
    for (auto _ : state)
      for (const ImageRequest& r : requests(*plan_fusion(nullptr, p.request()).compiled))
        benchmark::DoNotOptimize(compile_image(r));
  } catch (const Error& e) {
    state.SkipWithError(e.what());
  }
}
BENCHMARK(planned_and_compiled)->Unit(benchmark::kMillisecond);

double microseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void from_disk(benchmark::State& state) {
  const Program& p = softmax();
  const Folder folder;
  const auto store = std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder.path});
  try {
    std::shared_ptr<const Compiled> made;
    std::vector<KernelImage> images;
    const double cold_us = microseconds([&] {
      made = plan_fusion(nullptr, p.request()).compiled;
      for (const ImageRequest& r : requests(*made)) images.push_back(compile_image(r));
    });
    FusionCache(store).keep(p.request(), *made, images);
    double all_us = 0;
    for (auto _ : state)
      all_us += microseconds([&] {
        FusionCache cache(store);
        const PlannedFusion found = plan_fusion(&cache, p.request(), {.only_cached = true});
        const std::vector<ImageRequest> wanted = requests(*found.compiled);
        for (size_t i = 0; i < wanted.size(); ++i)
          if (!fits(found.images[i], wanted[i])) state.SkipWithError("a binary is missing");
      });
    state.counters["cold_over_disk"] = cold_us * static_cast<double>(state.iterations()) / all_us;
  } catch (const Error& e) {
    state.SkipWithError(e.what());
  }
}
BENCHMARK(from_disk)->Unit(benchmark::kMillisecond);

// The microseconds from a call to the end of its launches, in a process that has a CUDA context and the inputs on the GPU.
double first_launch_us(const std::string& folder) {
  const auto context = make_cuda_device();
  Program p = softmax();
  const std::vector<Argument> arguments =
      make_arguments(p.module.graphs[0], find_input_specs(p.module, p.module.graphs[0].name, "host"), {});
  std::vector<RunTensor> inputs;
  for (const Argument& a : arguments)
    if (!a.is_scalar) inputs.push_back(context->upload(a.tensor));
  context->synchronize();
  return microseconds([&] {
    const auto cache =
        std::make_shared<FusionCache>(std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder}));
    const FusionRequest request{.fusion = p.module.graphs[0],
                                .bindings = p.sizes,
                                .options = p.options,
                                .target = cache_target(Executor::kCuda)};
    const PlannedFusion planned = plan_fusion(cache.get(), request);
    const auto device = make_cuda_device({.images = cache});
    device->offer(planned.images);
    std::vector<NamedKernel> kernels;
    for (size_t i = 0; i < planned.compiled->kernels.size(); ++i)
      kernels.push_back({planned.compiled->segmentation.segments[i].name, &planned.compiled->kernels[i]});
    HostProgramOptions options;
    options.in_place_inputs = inputs;
    run_host_program(planned.compiled->host, kernels, *device, arguments, options, false);
    if (!planned.is_from_cache) cache->keep(request, *planned.compiled, device->images());
  });
}

// The lines that a child process prints.
double child_us(const std::string& folder) {
  const std::string command = std::filesystem::read_symlink("/proc/self/exe").string() + " --child " + folder;
  FILE* const child = ::popen(command.c_str(), "r");
  double us = -1;
  if (!child || std::fscanf(child, "%lf", &us) != 1) us = -1;
  if (child && ::pclose(child) != 0) us = -1;
  return us;
}

void new_process(benchmark::State& state) {
  if (default_executor() != Executor::kCuda) return state.SkipWithError("no GPU is there");
  double cold_us = 0, disk_us = 0;
  for (auto _ : state) {
    const Folder folder;
    const double cold = child_us(folder.path), disk = child_us(folder.path);
    if (cold < 0 || disk < 0) return state.SkipWithError("a process failed");
    cold_us += cold, disk_us += disk;
    state.SetIterationTime(disk * 1e-6);
  }
  state.counters["cold_ms"] = benchmark::Counter(cold_us * 1e-3, benchmark::Counter::kAvgIterations);
  state.counters["disk_ms"] = benchmark::Counter(disk_us * 1e-3, benchmark::Counter::kAvgIterations);
  state.counters["cold_over_disk"] = cold_us / disk_us;
}
BENCHMARK(new_process)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fusebox

int main(int argc, char** argv) try {
  if (argc == 3 && std::strcmp(argv[1], "--child") == 0)
    return std::printf("%.1f\n", fusebox::first_launch_us(argv[2])), 0;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
} catch (const fusebox::Error& e) {
  return std::fprintf(stderr, "bench_cache: %s\n", e.what()), 1;
}
