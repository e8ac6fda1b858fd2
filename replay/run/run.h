// The fusion executor takes a program and its inputs through every stage to outputs. The command line, Python, replays
// and the fuzzers call this one function.
//
// Invariants: the caller's inputs are not written. Every stage that was reached has a digest. A failure is a value, and
// keeps the stages before it.
//
//   Run r = run_program(module, arguments, {.executor = Executor::kHost});
//   if (r.failure) …   else r.outputs[0].tensor
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/module/module.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/tensor_data.h"
#include "replay/device/aten_api.h"
#include "replay/run/compare.h"
#include "serde/bundle.h"
#include "serde/cache_record.h"

namespace fusebox {

class FusionCache;

enum class Executor : uint8_t { kCuda, kHost, kAten };
std::string_view text(Executor e);
std::optional<Executor> parse_executor(std::string_view word);
// cuda if there is a GPU, else host. Loads nothing to find out.
Executor default_executor();

struct RunOptions {
  Executor executor = Executor::kHost;
  // Steps of the fusion. Without them the module's own list, or the automatic plan if the module has none.
  std::optional<std::vector<Step>> steps = {};
  bool unfused = false;  // the unfused plan even if the module has steps
  // The GPU for which the automatic plan is made where no schedule is given; none: such a program runs unfused.
  std::optional<DeviceProperties> device = {};
  int threads = 1;           // of the host executor
  int index_bits = 0;        // 0: chosen from the inputs
  Defects defects = {};      // seeded
  bool keep_sources = true;  // the CUDA text of each kernel, its digest and that of the kernel plans
  // Compiled fusions of earlier runs, and a place for this one. Null: none.
  std::shared_ptr<FusionCache> cache = nullptr;
  bool only_cached = false;  // fail with kNotCached rather than plan or compile
  // Kernels are made for the strides that ATen will give what its segments make; false: it is made contiguous.
  bool infer_contiguity = true;
  // A replay: the layouts that the run recorded, which what ATen makes gets.
  std::optional<std::vector<CrossingLayout>> crossings = {};
  bool run_sources = false;  // `execute` on cuda compiles the texts of `Run::sources`, not those of the kernels
};

struct RunOutput {
  std::string name;        // of the output
  std::string overwrites;  // the input that it is stored over, or empty
  Argument value;
  Digest digest;
};

struct KernelSource {
  std::string kernel;
  std::string text;
};

struct Run {
  Executor executor = Executor::kHost;
  Graph fusion;
  std::vector<Step> steps;  // the applied schedule; empty if unfused
  bool unfused = false;
  std::optional<DeviceProperties> device;  // the GPU that was to be planned for, if schedulers had to decide
  bool infer_contiguity = true;            // as in RunOptions
  Defects defects;
  Compiled compiled;
  std::vector<KernelSource> sources;
  std::vector<StageDigest> digests;  // in the order of the stages
  std::vector<RunOutput> outputs;
  std::optional<Failure> failure;
  int64_t launches = 0;
  std::vector<CrossingLayout> crossings;  // of tensors that kernels hand to one another
  std::vector<KeyValue> environment;
  bool is_from_cache = false;       // `compiled` was not planned in this run
  std::vector<KernelImage> images;  // of the kernels, with a cache: given to the device, then what the device has
};

// A failure of compilation or of the run goes into `failure`. Wrong inputs throw.
Run run_program(const Module& module, std::span<const Argument> inputs, const RunOptions& options);
// Runs programs that exist already: `run.compiled` has the kernels and the host program.
void execute(Run& run, std::span<const Argument> inputs, const RunOptions& options);
// The target that a program for this executor is compiled for, as keys of caches name it.
std::string cache_target(Executor executor, int ordinal = 0);
// Adds the facts that the run depends on beside the program. Throws kModuleMissing or kNoDevice without its executor.
void describe_environment(Run& run);
// Digests of the compiled stages. With `sources` also makes the CUDA text, and digests it and the kernel plans.
void digest_stages(Run& run, bool sources);

struct CheckedOutput {
  std::string name;
  Comparison comparison;
};
// Compares the outputs with the ATen evaluator. Throws kModuleMissing without it.
std::vector<CheckedOutput> check_outputs(const Run& run, std::span<const Argument> inputs);

// The arguments of a fusion from specs, by name, in the order of its inputs. Throws kMissingInput, kBadInput.
std::vector<Argument> make_arguments(const Graph& fusion, const InputSpecs* defaults,
                                     const std::vector<std::string>& given);
Digest combine(const std::vector<Digest>& parts);
// An error as a bundle keeps it, with texts cut to its limits.
Failure failure_of(const Error& e);

}  // namespace fusebox
