// From a call to a program that is ready to launch: planned and compiled, or taken from the cache on disk. Without a GPU
// the last step, loading the binary into the driver, is missing in both.
#include <benchmark/benchmark.h>
#include <filesystem>
#include <unistd.h>

#include "codegen/cuda.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "replay/cache/folder_store.h"
#include "replay/cache/fusion_cache.h"
#include "replay/data/file.h"
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

void from_disk(benchmark::State& state) {
  const Program& p = softmax();
  const Folder folder;
  const auto store = std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder.path});
  try {
    const auto made = plan_fusion(nullptr, p.request()).compiled;
    std::vector<KernelImage> images;
    for (const ImageRequest& r : requests(*made)) images.push_back(compile_image(r));
    FusionCache(store).keep(p.request(), *made, images);
    for (auto _ : state) {
      FusionCache cache(store);
      const PlannedFusion found = plan_fusion(&cache, p.request(), {.only_cached = true});
      const std::vector<ImageRequest> wanted = requests(*found.compiled);
      for (size_t i = 0; i < wanted.size(); ++i)
        if (!fits(found.images[i], wanted[i])) state.SkipWithError("a binary is missing");
    }
  } catch (const Error& e) {
    state.SkipWithError(e.what());
  }
}
BENCHMARK(from_disk)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fusebox
