#include "codegen/cuda.h"
#include "ir/canonical.h"
#include "ir/dot.h"
#include "ir/error.h"
#include "ir/json.h"
#include "ir/print.h"
#include "passes/pipeline.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"
#include "replay/record.h"
#include "replay/run.h"

namespace fusebox::cli {
namespace {

// A run that went as far as its programs: those of the module for its default host inputs. Of the inputs only sizes and scalars matter.
Run compile_file(const LoadedFile& file, bool unfused) {
  const Graph& fusion = main_graph(file.module);
  const InputSpecs* specs = find_input_specs(file.module, fusion.name, "host");
  if (!specs) specs = find_input_specs(file.module, fusion.name, "gpu");
  std::vector<BoundInput> sizes;
  for (ValueId v : inputs(fusion)) {
    const InputSpec* spec = nullptr;
    if (specs)
      for (const InputSpec& s : specs->specs)
        if (s.name == fusion[v].name) spec = &s;
    if (!spec) throw Error(ErrorCode::kMissingInput, "the program carries no default for this input, and its size decides; add one to its `inputs`", "%" + fusion[v].name);
    sizes.push_back({spec->is_scalar, spec->value, spec->shape, spec->strides});
  }
  Run run;
  run.fusion = fusion;
  CompileOptions options;
  if (const StepList* list = find_steps(file.module, fusion.name); list && !unfused) options.steps = list->steps;
  run.compiled = compile(fusion, bind_sizes(fusion, sizes), options);
  return run;
}

// What the parameters of a kernel's text are called in the program.
std::string parameter_comments(const Graph& kernel) {
  std::string out = "// @" + kernel.name + ":\n";
  int tensors = 0, scalars = 0;
  for (ValueId v : inputs(kernel)) {
    const std::string name = kernel.is_tensor(v) ? "t" + std::to_string(tensors++) : "s" + std::to_string(scalars++);
    out += "//   " + name + " is %" + kernel[v].name + " : " + print_type(kernel, v) + "\n";
  }
  return out;
}

std::string kernel_comments(const Graph& kernel) {
  const std::vector<std::string> canonical = canonical_names(kernel);
  std::string out;
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const ValueId v(static_cast<uint32_t>(i));
    const bool is_parameter = kernel[v].def && kernel[kernel[v].def].kind == OpKind::kInput;
    const bool is_buffer = kernel[v].def && kernel[kernel[v].def].kind == OpKind::kAllocate;
    if ((is_parameter || is_buffer) && !canonical[i].empty())
      out += "//   " + canonical[i] + " is %" + kernel[v].name + (is_buffer ? ", a buffer\n" : ", a parameter\n");
  }
  return out.empty() ? out : "// canonical names of @" + kernel.name + ":\n" + out;
}

std::string describe_bundle(const Bundle& b) {
  std::string out = "// bundle of @" + b.program + "\n";
  for (const KeyValue& o : b.options) out += "// option " + o.key + ": " + o.value + "\n";
  for (const StageDigest& d : b.digests) out += fmt::format("// digest {:<12} {}\n", d.name, text(d.digest));
  for (const Rank& r : b.ranks) {
    out += "// run on " + r.executor + "\n";
    for (const KeyValue& e : r.environment) out += "//   " + e.key + ": " + e.value + "\n";
    for (const InputRecord& i : r.inputs) out += "//   input " + print(i.spec) + (i.bytes ? " (its bytes are in the bundle)" : "") + "\n";
    for (const OutputRecord& o : r.outputs) {
      out += "//   output %" + o.name + " " + std::string(text(o.dtype)) + "[";
      for (size_t k = 0; k < o.shape.size(); ++k) out += (k ? ", " : "") + std::to_string(o.shape[k]);
      out += "] " + text(o.digest) + "\n";
    }
    if (r.failure) out += "//   failed: " + code_text(r.failure->code) + " " + r.failure->place + ": " + r.failure->message + "\n";
  }
  return out;
}

// The graphs of a level.
Module programs(const LoadedFile& file, Stage stage, bool unfused) {
  if (file.bundle && !unfused)
    if (const Module* m = find_stage(*file.bundle, stage)) return *m;
  return stage_module(compile_file(file, unfused), file.module, stage);
}

std::string cuda_text(const LoadedFile& file, bool unfused, bool as_json) {
  std::string out;
  const auto add = [&](const std::string& kernel, const std::string& comments, const std::string& text) {
    if (as_json)
      out += JsonObject().add("kernel", kernel).add("cuda", text).text() + "\n";
    else
      out += (out.empty() ? "" : "\n") + comments + text;
  };
  const Module kernels = programs(file, Stage::kKernel, unfused);
  if (file.bundle && !file.bundle->artifacts.empty() && !unfused) {
    for (size_t i = 0; i < file.bundle->artifacts.size(); ++i) {
      const Artifact& a = file.bundle->artifacts[i];
      if (!a.cuda.empty()) add(a.kernel, i < kernels.graphs.size() ? parameter_comments(kernels.graphs[i]) : "", a.cuda);
    }
    return out;
  }
  for (const Graph& kernel : kernels.graphs) add(kernel.name, parameter_comments(kernel), emit_cuda(kernel).text);
  return out;
}

std::string formatted(const Module& m, const std::string& format, bool domains) {
  if (format == "json") return to_json(m) + "\n";
  if (format == "text") return print(m);
  std::string out;
  for (const Graph& g : m.graphs) out += domains ? domains_to_dot(g) : ops_to_dot(g);
  return out;
}

}  // namespace

int show_command(const ShowArguments& a, Common& common) {
  const LoadedFile file = load_file(a.file);
  common.subject = subject_of(file);
  const std::string format = common.json ? "json" : a.format;
  std::string out;
  if (a.level.empty()) {
    if (file.bundle && format == "text") out += describe_bundle(*file.bundle);
    out += formatted(file.module, format, false);
  } else if (a.level == "math") {
    Module m;
    m.graphs.push_back(main_graph(file.module));
    out = formatted(m, format, false);
  } else if (a.level == "cuda") {
    if (format == "dot") throw Error(ErrorCode::kUsage, "CUDA text has no drawing; draw level kernel", "--format dot");
    out = cuda_text(file, a.unfused, format == "json");
  } else {
    const Stage stage = a.level == "scheduled" ? Stage::kScheduled : a.level == "kernel" ? Stage::kKernel : Stage::kHost;
    Module m = programs(file, stage, a.unfused);
    if (stage == Stage::kHost) std::erase_if(m.graphs, [](const Graph& g) { return g.level != Level::kHost; });
    if (format == "text" && stage == Stage::kKernel)
      for (const Graph& g : m.graphs) out += kernel_comments(g);
    out += formatted(m, format, stage == Stage::kScheduled);
  }
  print_text(out);
  return 0;
}

}  // namespace fusebox::cli
