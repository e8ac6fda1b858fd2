#include "replay/cli/load.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "replay/data/file.h"
#include "replay/device/cuda_loader.h"
#include "replay/record/record.h"
#include "serde/decode.h"
#include "serde/limits.h"

namespace fusebox::cli {
namespace {

std::string head_comment_of(std::string_view text) {
  std::string head, blank;  // `blank`: lines that count only if a comment follows
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("//"))
      head += std::exchange(blank, {}) + std::string(line) + "\n";
    else if (line.find_first_not_of(" \t") == std::string_view::npos)
      blank += "\n";
    else
      break;
  }
  return head;
}

}  // namespace

LoadedFile load_file(const std::string& path) {
  const std::vector<std::byte> content = read_file(path, limits::kFileBytes);
  return load_bytes(path, content);
}

LoadedFile load_bytes(const std::string& path, std::span<const std::byte> content) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  LoadedFile file;
  file.path = path;
  if (is_module(bytes)) {
    file.module = decode_module(bytes);
  } else if (is_bundle(bytes) || std::filesystem::path(path).extension() == ".fuse") {
    file.bundle = decode_bundle(bytes);
    const Module* fusion = find_stage(*file.bundle, Stage::kFusion);
    if (!fusion) throw Error(ErrorCode::kInvalidField, "the bundle holds no fusion; record it again", "stages");
    file.module = *fusion;
  } else {
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    try {
      file.module = parse_module(text);
    } catch (const Error& e) {
      const bool is_position = !e.place.empty() && std::isdigit(static_cast<unsigned char>(e.place[0])) != 0;
      throw Error(e.code, e.what(), is_position ? path + ":" + e.place : e.place);
    }
    verify(file.module);
    file.head_comment = head_comment_of(text);
  }
  if (file.module.graphs.empty())
    throw Error(ErrorCode::kInvalidGraph, "the file holds no program; write one, such as `fusion @f { … }`", path);
  return file;
}

Bundle subject_of(const LoadedFile& file) {
  if (file.bundle) return *file.bundle;
  Bundle b;
  b.program = main_graph(file.module).name;
  b.stages.push_back({Stage::kFusion, file.module});
  return b;
}

std::vector<Step> read_steps(const std::string& path, const Graph& fusion) {
  const std::string text = read_text_file(path);
  try {
    return parse_steps(text);
  } catch (const Error& steps_error) {
    // A whole program: takes its steps for the fusion.
    try {
      const Module m = parse_module(text);
      if (const StepList* list = find_steps(m, fusion.name)) return list->steps;
    } catch (const Error&) {
    }
    throw Error(steps_error.code, steps_error.what(), path + ":" + steps_error.place);
  }
}

void set_default_precision(Module& module, const std::string& word) {
  const std::string graph = main_graph(module).name;
  auto list = std::find_if(module.step_lists.begin(), module.step_lists.end(),
                           [&](const StepList& l) { return l.graph == graph; });
  if (list == module.step_lists.end()) {
    module.step_lists.push_back({.name = {}, .graph = graph, .steps = {}});
    list = module.step_lists.end() - 1;
  }
  list->steps.insert(list->steps.begin(), precision_step(word == "fast"));
}

void choose_plan(Module& module, const PlanArguments& arguments) {
  if (arguments.plan.empty()) return;
  const std::string graph = main_graph(module).name;
  std::erase_if(module.step_lists, [&](const StepList& l) { return l.graph == graph; });
}

std::optional<DeviceProperties> planned_device(const PlanArguments& arguments, Executor executor) {
  if (arguments.plan == "unfused") return std::nullopt;
  if (!arguments.device.empty()) return find_device(arguments.device);
  if (executor == Executor::kCuda)
    if (const auto devices = cuda_backend().devices(); !devices.empty()) return devices[0].properties;
  return default_device();
}

bool take_recorded_plan(const LoadedFile& file, const PlanArguments& arguments, RunOptions& options) {
  if (!file.bundle || file.bundle->ranks.empty() || file.bundle->ranks[0].executor == text(Executor::kAten))
    return false;
  if (!arguments.plan.empty() || !arguments.device.empty()) return false;
  options.device.reset();
  fusebox::take_recorded_plan(*file.bundle, options);
  options.infer_contiguity = options.infer_contiguity && arguments.infer_contiguity;
  return true;
}

std::vector<BoundInput> default_sizes(const Module& module, const std::string& where) {
  const Graph& fusion = main_graph(module);
  const InputSpecs* specs = find_input_specs(module, fusion.name, where);
  if (!specs) specs = find_input_specs(module, fusion.name, where == "gpu" ? "host" : "gpu");
  std::vector<BoundInput> sizes;
  for (ValueId v : inputs(fusion)) {
    const InputSpec* spec = nullptr;
    if (specs)
      for (const InputSpec& s : specs->specs)
        if (s.name == fusion[v].name) spec = &s;
    if (!spec)
      throw Error(ErrorCode::kMissingInput,
                  "the program carries no default for this input, and its size decides; add one to its `inputs`",
                  "%" + fusion[v].name);
    sizes.push_back({spec->is_scalar, spec->value, spec->shape, spec->strides});
  }
  return sizes;
}

Bundle load_bundle(const std::string& path) {
  LoadedFile file = load_file(path);
  if (!file.bundle)
    throw Error(ErrorCode::kNotABundle,
                "only a bundle can be replayed; make one with `fusebox run FILE --record OUT.fuse`", path);
  return std::move(*file.bundle);
}

}  // namespace fusebox::cli
