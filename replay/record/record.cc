#include "replay/record/record.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "codegen/cuda.h"
#include "codegen/same_bits.h"
#include "ir/module/device_numbers.h"
#include "ir/table/error.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/fresh_names.h"
#include "passes/segment/assign_step.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "serde/encode.h"

namespace fusebox {
namespace {

std::vector<uint8_t> exact_bytes(const TensorData& t) {
  const TensorData flat = contiguous_copy(t);
  const auto* begin = reinterpret_cast<const uint8_t*>(flat.data());
  return {begin, begin + element_count(flat.shape) * size_bytes(flat.dtype)};
}

InputSpec plain_spec(const std::string& name, const Argument& a) {
  InputSpec spec;
  spec.name = name;
  spec.dtype = a.dtype;
  spec.is_scalar = a.is_scalar;
  if (a.is_scalar) {
    spec.value = a.bits;
    return spec;
  }
  spec.shape = a.tensor.shape;
  if (a.tensor.strides != contiguous_strides(a.tensor.shape)) spec.strides = a.tensor.strides;
  spec.offset = a.tensor.offset;
  return spec;
}

// A GPU as the option `device` keeps it: its numbers, its architecture and its name, which may hold spaces.
std::string device_text(const DeviceProperties& d) {
  std::string all;
  for (const auto number : kDeviceNumbers) all += std::to_string(d.*number) + " ";
  return all + d.architecture + " " + d.name;
}

DeviceProperties parse_device(const std::string& text) {
  constexpr int64_t kMost = int64_t{1} << 44;
  DeviceProperties d;
  std::istringstream words(text);
  bool ok = true;
  for (const auto number : kDeviceNumbers) ok = ok && words >> d.*number && d.*number > 0 && d.*number <= kMost;
  if (!ok || !(words >> d.architecture) || !std::getline(words >> std::ws, d.name))
    throw Error(ErrorCode::kInvalidField, "the option `device` describes no GPU; record the run again", "options");
  return d;
}

bool is_by_aten(const Bundle& b) { return !b.ranks.empty() && b.ranks[0].executor == text(Executor::kAten); }

// None of a run by ATen, which runs the fusion itself.
const StepList* recorded_schedule(const Bundle& b) {
  if (is_by_aten(b)) return nullptr;
  const auto it = std::ranges::find(b.steps, "schedule", &StepList::name);
  return it == b.steps.end() ? nullptr : &*it;
}

std::string recorded_plan(const Bundle& b) {
  const std::string* plan = find_value(b.options, "plan");
  return plan ? *plan : "";
}

// Assigns each segment, if the steps hold no schedule: then the program ran as the unfused plan. A kernel of one op that
// no other step names is scheduled as in that plan.
void add_assignments(const Graph& fusion, const Segmentation& segmentation, std::vector<Step>& steps) {
  // The loops of a scheduled graph are its schedule.
  if (fusion.level == Level::kScheduled || leading_rewrites(steps) < steps.size()) return;
  for (const Segment& segment : segmentation.segments)
    steps.push_back(assign_step(segment.ops, assignable_name(segment.name), segment.executor));
}

}  // namespace

void take_recorded_plan(const Bundle& bundle, RunOptions& options) {
  const std::string plan = recorded_plan(bundle);
  options.unfused = plan == "unfused";
  if (const StepList* schedule = recorded_schedule(bundle); schedule && !options.unfused)
    options.steps = schedule->steps;
  if (const std::string* device = find_value(bundle.options, "device"); device && plan == "automatic")
    options.device = parse_device(*device);
  const std::string* infer = find_value(bundle.options, "infer");
  options.infer_contiguity = !infer || *infer != "none";
}

void take_recorded_schedule(const Bundle& bundle, Module& module) {
  const std::string graph = main_graph(module).name;
  const auto is_own = [&](const StepList& list) { return list.graph == graph; };
  const std::string plan = recorded_plan(bundle);
  const StepList* schedule = plan == "unfused" ? nullptr : recorded_schedule(bundle);
  if (!schedule) {
    if (plan == "unfused" || plan == "automatic") std::erase_if(module.step_lists, is_own);
    return;
  }
  const auto own = std::ranges::find_if(module.step_lists, is_own);
  if (own == module.step_lists.end())
    module.step_lists.push_back({"", graph, schedule->steps});
  else
    own->steps = schedule->steps;
}

void assign_recorded_segments(const Bundle& bundle, Module& module) {
  const Module* segments = find_stage(bundle, Stage::kSegments);
  if (!segments || segments->graphs.empty() || segments->segmentations.size() != 1) return;
  const std::string plan = recorded_plan(bundle), graph = main_graph(module).name;
  auto own = std::ranges::find(module.step_lists, graph, &StepList::graph);
  const bool has_steps = own != module.step_lists.end() && !own->steps.empty();
  // An empty list is a schedule: one kernel without any step.
  if (plan != "unfused" && (plan != "steps" || !has_steps)) return;
  StepList list = has_steps ? *own : StepList{"", graph, {}};
  add_assignments(main_graph(*segments), segments->segmentations[0], list.steps);
  if (list.steps.empty()) return;
  if (own == module.step_lists.end())
    module.step_lists.push_back(std::move(list));
  else
    *own = std::move(list);
}

std::vector<Step> repeating_steps(const Run& run) {
  std::vector<Step> steps = run.steps;
  const Compiled& c = run.compiled;
  if (run.executor != Executor::kAten && !c.automatic && (run.unfused || !steps.empty()))
    add_assignments(c.concretized, c.segmentation, steps);
  return steps;
}

std::vector<RecordedInput> exact_inputs(const Graph& fusion, std::span<const Argument> inputs) {
  std::vector<RecordedInput> result;
  const auto values = fusebox::inputs(fusion);
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back({plain_spec(fusion[values[i]].name, inputs[i]), inputs[i].is_scalar});
  return result;
}

std::vector<RecordedInput> recorded_inputs(const Graph& fusion, const InputSpecs* defaults,
                                           const std::vector<std::string>& given, std::span<const Argument> inputs) {
  std::vector<RecordedInput> result = exact_inputs(fusion, inputs);
  for (RecordedInput& r : result) {
    if (defaults)
      for (const InputSpec& s : defaults->specs)
        if (s.name == r.spec.name && !s.is_scalar) r = {s, true};
    for (const std::string& text : given) {
      const InputOption o = parse_input_option(text);
      if (o.name != r.spec.name) continue;
      if (o.spec && !o.spec->is_scalar) {
        r = {*o.spec, true};
        r.spec.name = o.name;
      } else {
        const auto at = static_cast<size_t>(&r - result.data());
        r = {plain_spec(o.name, inputs[at]), inputs[at].is_scalar};
      }
    }
  }
  return result;
}

Module stage_module(const Run& run, const Module& given, Stage stage) {
  const Compiled& c = run.compiled;
  Module m;
  switch (stage) {
    case Stage::kFusion:
      return given;
    case Stage::kConcretized:
      m.graphs = {c.concretized};
      break;
    case Stage::kSegments:
      m.graphs = {c.concretized};
      m.segmentations = {c.segmentation};
      break;
    case Stage::kScheduled:
      m.graphs = c.scheduled;
      break;
    case Stage::kKernel:
      for (size_t i = 0; i < c.kernels.size(); ++i)
        if (c.segmentation.segments[i].executor == SegmentExecutor::kKernel) m.graphs.push_back(c.kernels[i]);
      break;
    case Stage::kHost:
      // Adds the kernels that it launches, so that the module is complete.
      m = stage_module(run, given, Stage::kKernel);
      m.graphs.insert(m.graphs.begin(), c.host);
      break;
  }
  return m;
}

std::vector<OutputRecord> output_records(const Run& run) {
  std::vector<OutputRecord> records;
  for (const RunOutput& out : run.outputs) {
    OutputRecord record{out.name, out.value.dtype, {}, {}, out.digest};
    if (!out.value.is_scalar) {
      record.shape = out.value.tensor.shape;
      record.strides = out.value.tensor.strides;
    }
    records.push_back(std::move(record));
  }
  return records;
}

namespace {

void add_plan(const Run& run, Bundle& b) {
  if (run.executor == Executor::kAten) {
    b.options.push_back({"plan", "aten"});
    return;
  }
  // The schedulers failed, or a stage after them: what they chose is not known, so a replay lets them choose again.
  const bool is_unplanned = run.device && !run.compiled.automatic;
  if (is_unplanned ? !run.steps.empty() : !run.unfused) b.steps.push_back({"schedule", run.fusion.name, run.steps});
  b.options.push_back({"plan", is_unplanned ? "automatic" : run.unfused ? "unfused" : "steps"});
  if (is_unplanned) b.options.push_back({"device", device_text(*run.device)});
}

}  // namespace

Bundle make_bundle(const Run& run, const Module& module, const std::vector<RecordedInput>& specs,
                   std::span<const Argument> inputs) {
  Bundle b;
  b.program = run.fusion.name;
  b.stages.push_back({Stage::kFusion, module});
  const Compiled& c = run.compiled;
  const bool compiled = !c.host.ops.empty();
  if (compiled) {
    for (Stage stage : {Stage::kConcretized, Stage::kSegments, Stage::kScheduled, Stage::kKernel, Stage::kHost})
      b.stages.push_back({stage, stage_module(run, module, stage)});
    if (!c.concretize.empty()) b.steps.push_back({"concretize", run.fusion.name, c.concretize});
  }
  add_plan(run, b);
  if (!run.infer_contiguity) b.options.push_back({"infer", "none"});
  if (c.automatic)
    for (const Decision& d : c.automatic->decisions)
      b.options.push_back({"scheduler @" + d.segment, text(d.heuristics)});
  if (compiled) b.options.push_back({"index_bits", std::to_string(c.index_bits)});
  if (!run.defects.empty()) b.options.push_back({"defects", join(run.defects)});
  std::string flags;
  for (std::string_view flag : cuda_compile_options()) flags += (flags.empty() ? "" : " ") + std::string(flag);
  b.options.push_back({"cuda_options", flags});
  b.options.push_back({"numerics", std::to_string(kNumericsVersion)});
  b.digests = run.digests;
  Rank rank;
  rank.executor = text(run.executor);
  for (size_t i = 0; i < specs.size(); ++i) {
    InputRecord record{specs[i].spec, std::nullopt};
    if (!specs[i].has_generator) record.bytes = exact_bytes(inputs[i].tensor);
    rank.inputs.push_back(std::move(record));
  }
  rank.outputs = output_records(run);
  rank.crossings = run.crossings;
  rank.failure = run.failure;
  rank.environment = run.environment;
  b.ranks.push_back(std::move(rank));
  for (const KernelSource& s : run.sources) b.artifacts.push_back({s.kernel, {}, s.text, {}});
  return b;
}

std::vector<Argument> bundle_arguments(const Bundle& bundle) {
  if (bundle.ranks.empty())
    throw Error(ErrorCode::kInvalidField, "the bundle records no run; record one with `run --record`", "ranks");
  std::vector<Argument> result;
  for (const InputRecord& r : bundle.ranks[0].inputs) {
    if (!r.bytes) {
      result.push_back(make_argument(r.spec));
      continue;
    }
    TensorData flat = allocate_tensor(r.spec.dtype, r.spec.shape);
    if (!r.bytes->empty()) std::memcpy(flat.data(), r.bytes->data(), r.bytes->size());
    TensorData t = allocate_tensor(r.spec.dtype, r.spec.shape, r.spec.strides, r.spec.offset);
    copy_elements(t, flat);
    result.push_back(Argument::of(std::move(t)));
  }
  return result;
}

std::string write_to_temporary(const Bundle& bundle) {
  const std::string bytes = encode(bundle);
  std::error_code ignored;
  const auto folder = std::filesystem::temp_directory_path(ignored);
  const std::string path = (folder / ("fusebox-" + text(digest_bytes(bytes)).substr(0, 16) + ".fuse")).string();
  write_file(path, bytes);
  return path;
}

}  // namespace fusebox
