#include "replay/run/run.h"

#include <algorithm>
#include <thread>
#include <unistd.h>

#include "codegen/cuda.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cache/fusion_cache.h"
#include "replay/data/input.h"
#include "replay/device/cuda_loader.h"
#include "replay/device/module_loader.h"
#include "replay/run/aten_segment.h"
#include "replay/run/host_program.h"
#include "replay/run/prepare_together.h"
#include "serde/limits.h"

namespace fusebox {
namespace {

constexpr std::string_view kExecutors[] = {"cuda", "host", "aten"};

std::unique_ptr<Device> make_device(const Run& run, const RunOptions& options) {
  if (options.executor == Executor::kCuda) {
    CudaDeviceOptions cuda{.images = options.cache, .may_compile = !options.only_cached};
    if (options.run_sources)
      for (size_t i = 0; i < run.compiled.kernels.size(); ++i)
        for (const KernelSource& s : run.sources)
          if (s.kernel == run.compiled.segmentation.segments[i].name) cuda.texts[run.compiled.kernels[i].name] = s.text;
    return make_cuda_device(cuda);
  }
  return make_host_device({.threads = options.threads, .defects = options.defects});
}

std::string version_text(CudaVersion v) { return std::to_string(v.major) + "." + std::to_string(v.minor); }

// Takes the layouts of tensors that cross from one segment to another.
void take_crossings(Run& run, const ProgramResult& result) {
  std::string all;
  for (const Segment& s : run.compiled.segmentation.segments)
    for (const Crossing& out : s.outputs)
      for (const auto& [name, t] : result.allocated) {
        if (name != out.value) continue;
        run.crossings.push_back({s.name, name, t.dtype, t.shape, t.strides});
        all += describe(t) + "\n";
      }
  run.digests.push_back({"crossings", digest_bytes(all)});
}

void take_outputs(Run& run, std::vector<ProgramOutput> outputs) {
  const auto wanted = fusebox::outputs(run.fusion);
  std::vector<Digest> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    RunOutput out;
    out.name = run.fusion[wanted[i].value].name;
    if (wanted[i].alias) out.overwrites = run.fusion[wanted[i].alias].name;
    out.value = std::move(outputs[i].value);
    const ConstantBits bits = out.value.bits;
    out.digest = out.value.is_scalar ? digest_bytes(&bits, sizeof bits) : digest(out.value.tensor);
    parts.push_back(out.digest);
    run.outputs.push_back(std::move(out));
  }
  run.digests.push_back({"outputs", combine(parts)});
}

void run_aten_executor(Run& run, std::span<const Argument> inputs) {
  const Evaluation e = load_aten().evaluate(run.fusion, inputs, {.bounds = false, .intermediates = {}});
  std::vector<ProgramOutput> outputs;
  for (const Evaluated& v : e.outputs) {
    ProgramOutput out;
    const TensorData t = result_of(v);
    out.value = v.is_scalar ? Argument::scalar(v.dtype, load_element(t, t.offset)) : Argument::of(t);
    outputs.push_back(std::move(out));
  }
  take_outputs(run, std::move(outputs));
}

}  // namespace

std::string_view text(Executor e) { return kExecutors[static_cast<size_t>(e)]; }

std::optional<Executor> parse_executor(std::string_view word) {
  for (size_t i = 0; i < std::size(kExecutors); ++i)
    if (kExecutors[i] == word) return static_cast<Executor>(i);
  return std::nullopt;
}

Executor default_executor() {
  const bool has_gpu =
      access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
  return has_gpu ? Executor::kCuda : Executor::kHost;
}

std::string cache_target(Executor executor, int ordinal) {
  if (executor != Executor::kCuda) return "host";
  const auto devices = cuda_backend().devices();
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) return "cuda";  // opening it throws
  return "cuda " + devices[static_cast<size_t>(ordinal)].architecture;
}

void describe_environment(Run& run) {
  run.environment.push_back({"fusebox", FUSEBOX_VERSION});
  run.environment.push_back({"compiler", __VERSION__});
  if (run.executor != Executor::kCuda) return;
  CudaBackend& cuda = cuda_backend();
  const auto devices = cuda.devices();
  if (devices.empty()) throw Error(ErrorCode::kNoDevice, "no GPU is there; run on the host with --on host", "cuda");
  run.environment.push_back({"gpu", devices[0].name + " " + devices[0].architecture});
  run.environment.push_back({"driver", version_text(cuda.driver_version())});
  run.environment.push_back({"nvrtc", version_text(cuda.compiler_version())});
}

Failure failure_of(const Error& e) {
  // A compiler's log may exceed a bundle's limit. Its beginning names the error.
  const auto cut = [](std::string text) {
    constexpr std::string_view kMark = " … (cut)";
    if (text.size() <= limits::kTextBytes) return text;
    size_t end = limits::kTextBytes - kMark.size();
    while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character
    return text.substr(0, end).append(kMark);
  };
  return {e.code, cut(e.what()), cut(e.place)};
}

Digest combine(const std::vector<Digest>& parts) {
  std::string all;
  for (const Digest& d : parts) all += text(d);
  return digest_bytes(all);
}

namespace {

// Plans are made again where the kernels come from a bundle. Nothing where a schedule of an older bundle is not legal
// any more: its kernel is there all the same.
std::optional<Digest> digest_of_plans(const Compiled& c, const Defects& defects) {
  const auto is_kernel = [](const Segment& s) { return s.executor == SegmentExecutor::kKernel; };
  if (c.plans.size() == static_cast<size_t>(std::ranges::count_if(c.segmentation.segments, is_kernel)))
    return combine(c.plans);
  std::vector<Digest> plans;
  try {
    for (size_t i = 0; i < c.scheduled.size(); ++i)
      if (is_kernel(c.segmentation.segments[i])) {
        const Graph scheduled = canonical_order(c.scheduled[i]);
        plans.push_back(digest(plan_kernel(scheduled, {.defects = defects, .sizes = {}})));
      }
  } catch (const Error&) {
    return std::nullopt;
  }
  return combine(plans);
}

}  // namespace

void digest_stages(Run& run, bool sources) {
  const Compiled& c = run.compiled;
  std::vector<Digest> scheduled, kernels, texts;
  for (const Graph& g : c.scheduled) scheduled.push_back(digest(g));
  for (size_t i = 0; i < c.kernels.size(); ++i) {
    if (c.segmentation.segments[i].executor != SegmentExecutor::kKernel) continue;
    kernels.push_back(digest(c.kernels[i]));
    if (!sources) continue;
    run.sources.push_back({c.segmentation.segments[i].name, emit_cuda(c.kernels[i]).text});
    texts.push_back(digest(std::string_view(run.sources.back().text)));
  }
  run.digests.push_back({"concretized", digest(c.concretized)});
  run.digests.push_back({"segments", digest(c.concretized, c.segmentation)});
  run.digests.push_back({"scheduled", combine(scheduled)});
  if (sources)
    if (const auto plans = digest_of_plans(c, run.defects)) run.digests.push_back({"plan", *plans});
  run.digests.push_back({"kernel", combine(kernels)});
  run.digests.push_back({"host", digest(c.host)});
  if (sources) run.digests.push_back({"source", combine(texts)});
}

void execute(Run& run, std::span<const Argument> inputs, const RunOptions& options) {
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < run.compiled.kernels.size(); ++i)
    kernels.push_back({run.compiled.segmentation.segments[i].name, &run.compiled.kernels[i]});
  const auto device = make_device(run, options);
  device->offer(run.images);
  if (options.cache && options.executor == Executor::kCuda) prepare_together(*device, run.compiled.kernels);
  HostProgramOptions host;
  host.run_aten = run_aten_segments(run.compiled);
  if (options.crossings)
    for (const CrossingLayout& c : *options.crossings)
      host.recorded.push_back({c.segment, c.value, {c.shape, c.strides}});
  ProgramResult result = run_host_program(run.compiled.host, kernels, *device, inputs, host);
  run.images = device->images();
  run.launches = result.launches;
  // Strides are inferred for every device alike; what ran tells whose they were.
  if (!result.by_aten.empty())
    run.environment.push_back(
        {"aten", load_aten().version() + " on " + (device->aten_place().is_gpu ? "cuda" : "cpu")});
  take_crossings(run, result);
  if (const auto binaries = device->binaries(); !binaries.empty()) run.digests.push_back({"binary", combine(binaries)});
  take_outputs(run, std::move(result.outputs));
}

Run run_program(const Module& module, std::span<const Argument> inputs, const RunOptions& options) {
  Run run;
  run.executor = options.executor;
  run.infer_contiguity = options.infer_contiguity;
  run.defects = options.defects;
  run.fusion = main_graph(module);
  const Bindings bindings = bind_sizes(run.fusion, bound_inputs(inputs));
  describe_environment(run);
  try {
    run.digests.push_back({"fusion", digest(run.fusion)});
    if (options.executor == Executor::kAten) {
      run_aten_executor(run, inputs);
      return run;
    }
    CompileOptions compile_options;
    compile_options.index_bits = options.index_bits;
    compile_options.defects = options.defects;
    compile_options.inputs = bound_inputs(inputs);
    if (options.crossings)
      compile_options.infer = infer_by_record(*options.crossings);
    else if (options.infer_contiguity)
      compile_options.infer = infer_by_aten();
    const StepList* list = find_steps(module, run.fusion.name);
    run.unfused = options.unfused || (!options.steps && !list && !options.device);
    if (!run.unfused) {
      if (options.steps || list) compile_options.steps = options.steps ? *options.steps : list->steps;
      compile_options.device = options.device;
    }
    run.steps = compile_options.steps.value_or(std::vector<Step>());
    if (is_automatic(run.fusion, compile_options)) run.device = compile_options.device;
    // A record has the digests, because making them again means planning.
    compile_options.digest_plans = options.keep_sources || options.cache;
    const FusionRequest request{.fusion = run.fusion,
                                .bindings = bindings,
                                .options = compile_options,
                                .target = options.cache ? cache_target(options.executor) : ""};
    PlannedFusion planned = plan_fusion(options.cache.get(), request, {.only_cached = options.only_cached});
    run.compiled = *planned.compiled;
    run.is_from_cache = planned.is_from_cache;
    const size_t known = planned.images.size();
    run.images = std::move(planned.images);
    if (run.compiled.automatic) run.steps = run.compiled.automatic->steps;
    digest_stages(run, options.keep_sources);
    execute(run, inputs, options);
    if (options.cache && (!run.is_from_cache || run.images.size() > known))
      options.cache->keep(request, run.compiled, run.images);
  } catch (const Error& e) {
    run.failure = failure_of(e);
  }
  return run;
}

std::vector<CheckedOutput> check_outputs(const Run& run, std::span<const Argument> inputs) {
  EvaluateOptions how;
  if (run.executor == Executor::kCuda) how.by_cuda = computed_by_aten(run.compiled);
  const Evaluation e = load_aten().evaluate(with_precision(run.fusion, run.steps), inputs, how);
  std::vector<CheckedOutput> result;
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const RunOutput& out = run.outputs[i];
    TensorData actual = out.value.tensor;
    if (out.value.is_scalar) {
      actual = allocate_tensor(out.value.dtype, {});
      store_element(actual, 0, out.value.bits);
    }
    result.push_back({out.name, compare(actual, e.outputs[i], static_cast<int>(std::thread::hardware_concurrency()))});
  }
  return result;
}

std::vector<Argument> make_arguments(const Graph& fusion, const InputSpecs* defaults,
                                     const std::vector<std::string>& given) {
  std::vector<InputOption> options;
  for (const std::string& text : given) {
    options.push_back(parse_input_option(text));
    const auto v = find_value(fusion, options.back().name);
    if (!v || !fusion[*v].def || fusion[fusion[*v].def].kind != OpKind::kInput)
      throw Error(ErrorCode::kUnknownName, "the program has no input of this name; `show FILE` lists its inputs",
                  "%" + options.back().name);
  }
  std::vector<Argument> result;
  for (ValueId v : inputs(fusion)) {
    const std::string& name = fusion[v].name;
    const auto option =
        std::find_if(options.rbegin(), options.rend(), [&](const InputOption& o) { return o.name == name; });
    if (option != options.rend()) {
      result.push_back(make_argument(*option, fusion[v].dtype, !fusion.is_tensor(v)));
      continue;
    }
    const InputSpec* spec = nullptr;
    if (defaults)
      for (const InputSpec& s : defaults->specs)
        if (s.name == name) spec = &s;
    if (!spec)
      throw Error(ErrorCode::kMissingInput,
                  "the program carries no default for this input; give one with --input " + name + "=SPEC", "%" + name);
    result.push_back(make_argument(*spec));
  }
  for (size_t i = 0; i < result.size(); ++i) {
    const ValueId v = inputs(fusion)[i];
    if (result[i].is_scalar == fusion.is_tensor(v) || result[i].dtype != fusion[v].dtype)
      throw Error(ErrorCode::kBadInput,
                  "the program wants " + std::string(text(fusion[v].dtype)) +
                      (fusion.is_tensor(v) ? " in a tensor" : " as a scalar") + "; correct the input's spec",
                  "%" + fusion[v].name);
  }
  return result;
}

}  // namespace fusebox
