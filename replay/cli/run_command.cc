#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cache/user_cache.h"
#include "replay/cli/choose.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"
#include "replay/cli/timing_report.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/data/npy.h"
#include "replay/record/record.h"
#include "serde/encode.h"

namespace fusebox::cli {
namespace {

constexpr int kTunedRuns = 12;  // of each schedule

// The inputs of a program, and their form in a bundle.
struct Inputs {
  std::vector<Argument> arguments;
  std::vector<RecordedInput> records;
};

Inputs inputs_of_file(const LoadedFile& file, const Graph& fusion, Executor executor,
                      const std::vector<std::string>& given) {
  Inputs result;
  if (!file.bundle || file.bundle->ranks.empty()) {
    const InputSpecs* defaults = nullptr;
    if (executor == Executor::kCuda) defaults = find_input_specs(file.module, fusion.name, "gpu");
    if (!defaults) defaults = find_input_specs(file.module, fusion.name, "host");
    result.arguments = make_arguments(fusion, defaults, given);
    result.records = recorded_inputs(fusion, defaults, given, result.arguments);
    return result;
  }
  // The inputs of the recorded run, except those given now.
  InputSpecs defaults;
  for (const InputRecord& r : file.bundle->ranks[0].inputs) defaults.specs.push_back(r.spec);
  result.arguments = make_arguments(fusion, &defaults, given);
  result.records = recorded_inputs(fusion, &defaults, given, result.arguments);
  const std::vector<Argument> recorded = bundle_arguments(*file.bundle);
  for (size_t i = 0; i < recorded.size() && i < result.arguments.size(); ++i) {
    const InputRecord& r = file.bundle->ranks[0].inputs[i];
    const bool replaced = std::any_of(given.begin(), given.end(),
                                      [&](const std::string& g) { return parse_input_option(g).name == r.spec.name; });
    if (replaced || !r.bytes) continue;
    result.arguments[i] = recorded[i];
    result.records[i].has_generator = false;
  }
  return result;
}

void refuse_repeated_inputs(const std::vector<std::string>& given) {
  std::set<std::string> names;
  for (const std::string& option : given)
    if (const std::string name = parse_input_option(option).name; !names.insert(name).second)
      throw Error(ErrorCode::kUsage, "--input names this input twice; leave out one", "%" + name);
}

// A device or a pipe, which takes one output after another.
bool is_device(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
}

// NAME=FILE.npy pairs. A name is that of an output, or of an input that an output overwrites.
std::map<size_t, std::string> output_files(const Graph& fusion, const std::vector<std::string>& given) {
  std::map<size_t, std::string> files;
  const auto outs = outputs(fusion);
  for (const std::string& option : given) {
    const size_t equal = option.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == option.size())
      throw Error(ErrorCode::kUsage, "--output takes NAME=FILE.npy, such as --output y=y.npy", option);
    std::string name = option.substr(0, equal);
    if (name[0] == '%') name.erase(0, 1);
    size_t found = outs.size();
    for (size_t i = 0; i < outs.size(); ++i)
      if (fusion[outs[i].value].name == name || (outs[i].alias && fusion[outs[i].alias].name == name)) found = i;
    if (found == outs.size())
      throw Error(ErrorCode::kUnknownName, "the program has no output of this name; `show FILE` lists its outputs",
                  "%" + name);
    const std::string path = option.substr(equal + 1);
    if (files.contains(found))
      throw Error(ErrorCode::kUsage, "--output names this output twice; leave out one", "%" + name);
    for (const auto& [other, taken] : files)
      if (taken == path && !is_device(path))
        throw Error(ErrorCode::kUsage, "two outputs would be written into this file; give each its own", path);
    files[found] = path;
  }
  return files;
}

TensorData tensor_of(const Argument& a) {
  if (!a.is_scalar) return a.tensor;
  TensorData t = allocate_tensor(a.dtype, {});
  store_element(t, 0, a.bits);
  return t;
}

int64_t segment_count(const Run& run, SegmentExecutor executor) {
  return std::count_if(run.compiled.segmentation.segments.begin(), run.compiled.segmentation.segments.end(),
                       [&](const Segment& s) { return s.executor == executor; });
}
int64_t kernel_count(const Run& run) { return segment_count(run, SegmentExecutor::kKernel); }

std::string run_json(const Run& run, const std::vector<CheckedOutput>& checked, bool ok, const std::string& record,
                     const std::optional<Timing>& timing, const std::optional<Tuned>& tuned) {
  JsonObject stages;
  for (const StageDigest& d : run.digests) stages.add(d.name, text(d.digest));
  std::vector<std::string> outs;
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const RunOutput& o = run.outputs[i];
    JsonObject out;
    out.add("name", o.name).add("dtype", text(o.value.dtype));
    out.add("shape", std::span<const int64_t>(o.value.tensor.shape))
        .add("strides", std::span<const int64_t>(o.value.tensor.strides));
    out.add("digest", text(o.digest));
    if (!o.overwrites.empty()) out.add("overwrites", o.overwrites);
    if (!checked.empty())
      out.add("max_error", checked[i].comparison.max_error)
          .add("bound", checked[i].comparison.bound)
          .add("ok", checked[i].comparison.ok);
    outs.push_back(out.text());
  }
  JsonObject all;
  all.add("program", run.fusion.name).add("executor", text(run.executor)).add("kernels", kernel_count(run));
  all.raw("stages", stages.text()).raw("outputs", json_list(outs)).add("ok", ok);
  if (run.is_from_cache) all.add("cached", true);
  if (!record.empty()) all.add("record", record);
  if (timing) all.raw("timing", timing_json(*timing));
  if (tuned) all.raw("tuned", tuned_json(*tuned));
  if (run.failure) all.raw("error", error_object(run.failure->code, run.failure->message, run.failure->place));
  return all.text();
}

std::string run_text(const Run& run, const std::vector<CheckedOutput>& checked, const std::string& record,
                     const std::optional<Timing>& timing) {
  std::string out = "@" + run.fusion.name + " on " + std::string(text(run.executor));
  if (run.executor != Executor::kAten) {
    const int64_t kernels = kernel_count(run);
    out += fmt::format(": {} kernel{}, {} launch{}", kernels, kernels == 1 ? "" : "s", run.launches,
                       run.launches == 1 ? "" : "es");
    if (const int64_t aten = segment_count(run, SegmentExecutor::kAten))
      out += fmt::format(", {} segment{} by ATen", aten, aten == 1 ? "" : "s");
    if (const int64_t views = segment_count(run, SegmentExecutor::kView))
      out += fmt::format(", {} view{}", views, views == 1 ? "" : "s");
  }
  out += "\n";
  for (const StageDigest& d : run.digests) out += fmt::format("  {:<12} {}\n", d.name, text(d.digest));
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const RunOutput& o = run.outputs[i];
    out += "%" + o.name;
    if (!o.overwrites.empty()) out += " over %" + o.overwrites;
    out += " = " + (o.value.is_scalar ? print_literal(o.value.dtype, o.value.bits) : describe(o.value.tensor)) + "\n";
    if (checked.empty()) continue;
    const Comparison& c = checked[i].comparison;
    out += c.ok ? fmt::format("  agrees with ATen: largest error {} of {} allowed\n", c.max_error, c.bound)
                : "  DIFFERS from ATen: " + c.message(o.name) + "\n";
  }
  if (!record.empty()) out += "recorded in " + record + "\n";
  if (timing) out += timing_text(*timing);
  return out;
}

std::shared_ptr<FusionCache> cache_of(const RunArguments& a, const RunOptions& options) {
  if (!a.cache_only) {
    if (a.no_cache || !options.defects.empty() || options.executor == Executor::kAten) return nullptr;
    return user_cache(options.executor == Executor::kCuda ? CacheUse::kGpu : CacheUse::kHost);
  }
  if (!options.defects.empty() || options.executor == Executor::kAten)
    throw Error(ErrorCode::kUsage, "a run with defects or by ATen has no compiled fusion; leave out --cache-only");
  const CacheSettings settings = cache_settings();
  if (settings.folder.empty() || settings.limit_bytes == 0)
    throw Error(ErrorCode::kUsage, "the cache is switched off; set FUSEBOX_CACHE_DIR, or leave out --cache-only");
  // Opened here, so that a folder that cannot be used is an error.
  return cache_in({.folder = settings.folder, .limit_bytes = settings.limit_bytes});
}

// A bundle runs by the plan of its record, unless the arguments name another or ask for a search.
void take_recorded_plan(const LoadedFile& file, const RunArguments& a, RunOptions& options) {
  if (!a.steps.empty() || a.tune || !take_recorded_plan(file, a.plan, options)) return;
  // The word of the command line counts, not the one that the recorded run was given.
  if (!a.precision.empty() && options.steps)
    std::erase_if(*options.steps,
                  [](const Step& s) { return s == precision_step(true) || s == precision_step(false); });
}

// Tunes what a run with these options would plan.
Tuned tune_run(const Graph& fusion, std::span<const Argument> arguments, const Module& module,
               const RunOptions& options) {
  if (options.executor != Executor::kCuda)
    throw Error(
        ErrorCode::kUsage,
        "schedules are tuned by their times on a GPU; run with --on cuda where there is one, or leave out --tune",
        "--tune");
  if (options.unfused) throw Error(ErrorCode::kUsage, "the unfused plan has nothing to tune", "--tune");
  CompileOptions compile;
  compile.inputs = bound_inputs(arguments);
  compile.device = options.device;
  compile.index_bits = options.index_bits;
  compile.defects = options.defects;
  compile.steps = options.steps;
  if (const StepList* list = find_steps(module, fusion.name); list && !options.steps) compile.steps = list->steps;
  return tune_arguments(fusion, arguments, compile, {.runs = kTunedRuns});
}

}  // namespace

int run_command(const RunArguments& a, Common& common) {
  LoadedFile file = load_file(a.file);
  common.subject = subject_of(file);
  const Graph& fusion = main_graph(file.module);
  RunOptions options;
  options.executor = choose_executor(a.on);
  options.threads = a.threads;
  options.unfused = a.plan.plan == "unfused";
  options.device = planned_device(a.plan, options.executor);
  options.infer_contiguity = a.plan.infer_contiguity;
  choose_plan(file.module, a.plan);
  take_recorded_plan(file, a, options);
  options.defects = parse_defects(a.defects);
  if (!a.steps.empty()) options.steps = read_steps(a.steps, fusion);
  if (!a.precision.empty()) {
    const StepList* list = find_steps(file.module, fusion.name);
    if (!options.steps) options.steps = list ? list->steps : std::vector<Step>();
    options.steps->insert(options.steps->begin(), precision_step(a.precision == "fast"));
    options.unfused = false;
  }
  options.cache = cache_of(a, options);
  options.only_cached = a.cache_only;
  const auto files = output_files(fusion, a.outputs);
  refuse_repeated_inputs(a.inputs);
  const Inputs inputs = inputs_of_file(file, fusion, options.executor, a.inputs);

  std::optional<Tuned> tuned;
  if (a.tune) {
    tuned = tune_run(fusion, inputs.arguments, file.module, options);
    options.steps = tuned->best.automatic->steps;
    options.cache = nullptr;
  }
  const Run run = run_program(file.module, inputs.arguments, options);
  std::vector<CheckedOutput> checked;
  bool ok = !run.failure;
  if (ok && a.check) {
    checked = check_outputs(run, inputs.arguments);
    for (const CheckedOutput& c : checked) ok = ok && c.comparison.ok;
  }
  if (!run.failure)
    for (const auto& [index, path] : files) write_npy(path, tensor_of(run.outputs[index].value));
  const bool is_internal = run.failure && row_of(run.failure->code).outcome == Outcome::kInternal;
  std::optional<Bundle> bundle;
  if (!a.record.empty() || is_internal) bundle = make_bundle(run, file.module, inputs.records, inputs.arguments);
  if (!a.record.empty()) write_file(a.record, encode(*bundle));
  if (!a.save_steps.empty() && !run.failure) write_file(a.save_steps, print_steps(repeating_steps(run)));

  std::optional<Timing> timing;
  if (a.time > 0 && !run.failure) timing = time_run(run, inputs.arguments, a.time, a.threads);

  if (common.json)
    print_line(run_json(run, checked, ok, a.record, timing, tuned));
  else
    print_text(run.failure ? (a.record.empty() ? "" : "recorded in " + a.record + "\n")
                           : run_text(run, checked, a.record, timing) + (tuned ? tuned_text(*tuned) : ""));
  if (run.failure && !common.json)
    report_error(Error(run.failure->code, run.failure->message, run.failure->place), common);
  if (is_internal && a.record.empty()) write_reproducer(*bundle, common);
  return run.failure ? failure_exit_code(run.failure->code) : ok ? 0 : 1;
}

}  // namespace fusebox::cli
