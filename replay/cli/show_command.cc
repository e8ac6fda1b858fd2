#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/dot.h"
#include "ir/text/json.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "replay/cli/bank_conflicts.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/kernel_names.h"
#include "replay/cli/load.h"
#include "replay/cli/picture.h"
#include "replay/cli/refused.h"
#include "replay/cli/report.h"
#include "replay/cli/why.h"
#include "replay/record/record.h"
#include "replay/run/aten_segment.h"
#include "replay/run/run.h"

namespace fusebox::cli {
namespace {

// Compiles the module's program for its default host inputs. Only their sizes and scalars matter.
CompileAttempt compile_file(const LoadedFile& file, const std::optional<DeviceProperties>& device,
                            bool infer_contiguity, const Defects& defects) {
  const Graph& fusion = main_graph(file.module);
  const std::vector<BoundInput> sizes = default_sizes(file.module);
  CompileOptions options;
  options.defects = defects;
  options.inputs = sizes;
  options.device = device;
  if (infer_contiguity) options.infer = infer_by_aten();
  if (const StepList* list = find_steps(file.module, fusion.name)) options.steps = list->steps;
  return try_compile(fusion, bind_sizes(fusion, sizes), options);
}

// Lines of a comment: a recorded text may have several.
std::string comment(const std::string& text) {
  std::string out = "// ";
  for (const char letter : text) out += letter == '\n' ? "\n//     " : std::string(1, letter);
  return out + "\n";
}

std::string describe_bundle(const Bundle& b) {
  std::string out = comment("bundle of @" + b.program);
  for (const KeyValue& o : b.options) out += comment("option " + o.key + ": " + o.value);
  for (const StageDigest& d : b.digests) out += comment(fmt::format("digest {:<12} {}", d.name, text(d.digest)));
  for (const Rank& r : b.ranks) {
    out += comment("run on " + r.executor);
    for (const KeyValue& e : r.environment) out += comment("  " + e.key + ": " + e.value);
    for (const InputRecord& i : r.inputs)
      out += comment("  input " + print(i.spec) + (i.bytes ? " (its bytes are in the bundle)" : ""));
    for (const OutputRecord& o : r.outputs)
      out += comment(
          fmt::format("  output %{} {}[{}] {}", o.name, text(o.dtype), fmt::join(o.shape, ", "), text(o.digest)));
    if (r.failure)
      out += comment("  failed: " + code_text(r.failure->code) + " " + r.failure->place + ": " + r.failure->message);
  }
  for (const CacheRecord& r : b.records)
    if (r.compiled)
      out += comment(fmt::format("compiled fusion @{} for {}, {} kernels, {} binaries, {}", part_of(r.key, "program"),
                                 part_of(r.key, "target"), r.compiled->code.graphs.size() / 2,
                                 r.compiled->images.size(), text(digest(*r.compiled))));
  return out;
}

// The programs of a file at its stages: from the bundle if it has them, else compiled.
class Programs {
 public:
  Programs(const LoadedFile& file, std::optional<DeviceProperties> device, bool infer_contiguity,
           const Defects& defects)
      : file_(file), device_(std::move(device)), infer_contiguity_(infer_contiguity), defects_(defects) {}

  Module at(Stage stage) {
    if (file_.bundle && defects_.empty())
      if (const Module* m = find_stage(*file_.bundle, stage)) return *m;
    if (attempt().error) throw *attempt().error;
    Run run;
    run.fusion = main_graph(file_.module);
    run.compiled = attempt().made;
    return stage_module(run, file_.module, stage);
  }

  const Defects& defects() const { return defects_; }

  // Compiled anew, also if a bundle has the programs. Throws what compilation throws.
  const Compiled& compiled() {
    if (attempt().error) throw *attempt().error;
    return attempt().made;
  }

  // After `at` has thrown: the program whose steps or kernels were refused, if any.
  const CompileAttempt* refused() const {
    return attempt_ && attempt_->error && !attempt_->made.scheduled.empty() ? &*attempt_ : nullptr;
  }

 private:
  // The compilation that makes the stages that are not in the bundle.
  const CompileAttempt& attempt() {
    if (!attempt_) attempt_ = compile_file(file_, device_, infer_contiguity_, defects_);
    return *attempt_;
  }

  const LoadedFile& file_;
  const std::optional<DeviceProperties> device_;
  const bool infer_contiguity_;
  const Defects defects_;
  std::optional<CompileAttempt> attempt_;
};

// Small inputs to run the programs of a file with: those that a bundle records, else the default host inputs.
std::vector<Argument> default_arguments(const LoadedFile& file) {
  if (file.bundle) return bundle_arguments(*file.bundle);
  const Graph& fusion = main_graph(file.module);
  const InputSpecs* specs = find_input_specs(file.module, fusion.name, "host");
  if (!specs && !inputs(fusion).empty())
    throw Error(ErrorCode::kMissingInput, "the program has no default host inputs; add `inputs … host`",
                "@" + fusion.name);
  return make_arguments(fusion, specs, {});
}

std::string comments(const Graph& kernel, const Module& scheduled, bool cuda_first) {
  return kernel_comments(kernel, find_graph(scheduled, kernel.name), cuda_first);
}

std::string cuda_text(const LoadedFile& file, Programs& programs, bool from_bundle, bool as_json) {
  std::string out;
  const auto add = [&](const std::string& kernel, const std::string& head, const std::string& text) {
    if (as_json)
      out += JsonObject().add("kernel", kernel).add("cuda", text).text() + "\n";
    else
      out += (out.empty() ? "" : "\n") + head + text;
  };
  const Module kernels = programs.at(Stage::kKernel), scheduled = programs.at(Stage::kScheduled);
  if (!from_bundle || file.bundle->artifacts.empty()) {
    for (const Graph& kernel : kernels.graphs)
      add(kernel.name, comments(kernel, scheduled, true), emit_cuda(kernel, {.defects = programs.defects()}).text);
    return out;
  }
  for (const Artifact& a : file.bundle->artifacts) {
    const Graph* kernel = find_graph(kernels, a.kernel);
    if (!a.cuda.empty()) add(a.kernel, kernel ? comments(*kernel, scheduled, true) : "", a.cuda);
  }
  return out;
}

// The automatic plan's decision for each segment, and why other schedulers declined.
std::string decisions(const Compiled& c, bool as_json) {
  if (!c.automatic)
    return as_json ? "[]\n"
                   : "// the program has steps of its own; --plan automatic shows what schedulers would decide\n";
  std::string out;
  std::vector<std::string> all;
  for (const Decision& d : c.automatic->decisions) {
    out += "@" + d.segment + ": " + text(d.heuristics) + "\n";
    std::vector<std::string> declined;
    for (const Declined& other : d.declined) {
      out += "  not " + other.scheduler + ": " + other.why + "\n";
      declined.push_back(JsonObject().add("scheduler", other.scheduler).add("why", other.why).text());
    }
    JsonObject choices;
    for (const Heuristic& h : d.heuristics.choices)
      h.word.empty() ? choices.add(h.key, h.number) : choices.add(h.key, h.word);
    all.push_back(JsonObject()
                      .add("segment", d.segment)
                      .add("scheduler", d.heuristics.scheduler)
                      .raw("choices", choices.text())
                      .raw("declined", json_list(declined))
                      .text());
  }
  return as_json ? json_list(all) + "\n" : out;
}

std::string formatted(const Module& m, const std::string& format, bool domains) {
  if (format == "json") return to_json(m) + "\n";
  if (format == "text") return print(m);
  std::string out;
  for (const Graph& g : m.graphs) out += domains ? domains_to_dot(g) : ops_to_dot(g);
  return out;
}

// The domains as far as the steps made them.
std::string refused_schedule(const CompileAttempt& attempt, const std::string& format) {
  if (format == "text") return print_refused(attempt);
  Module m;
  m.graphs = attempt.made.scheduled;
  return formatted(m, format, true);
}

// Draws the schedule even if it cannot be lowered: one must see it to repair it.
std::string pictures(const LoadedFile& file, Programs& programs, IdGraphKind kind, const std::string& format,
                     const Defects& defects) {
  std::vector<picture::Picture> all;
  try {
    const Module segments = programs.at(Stage::kSegments);
    all = describe_all(programs.at(Stage::kScheduled).graphs,
                       segments.segmentations.empty() ? nullptr : &segments.segmentations[0], defects);
  } catch (const Error& e) {
    if (file.bundle) throw;
    const std::string why = code_text(e.code) + (e.place.empty() ? "" : " at " + e.place) + ": " + e.what();
    const CompileAttempt* attempt = programs.refused();
    if (attempt)
      all = describe_all(attempt->made.scheduled, &attempt->made.segmentation, defects);
    else
      all = {describe_uncompiled(file.module, defects)};
    if (attempt)
      all[attempt->segment].note = why;
    else if (all[0].note.empty())
      all[0].note = why;
  }
  return drawn(all, kind, format);
}

}  // namespace

int show_command(const ShowArguments& a, Common& common) {
  LoadedFile file = load_file(a.file);
  common.subject = subject_of(file);
  choose_plan(file.module, a.plan);
  if (!a.precision.empty()) set_default_precision(file.module, a.precision);
  // The programs of a bundle were compiled with its own steps.
  if (!a.precision.empty() || !a.plan.plan.empty()) file.bundle.reset();
  const std::string format = common.json ? "json" : a.format;
  if (a.why && (a.level != "kernel" || format != "text"))
    throw Error(ErrorCode::kUsage, "checks stand in kernels; add --level kernel, and leave the format out", "--why");
  const Defects defects = parse_defects(a.defects);
  Programs programs(file, planned_device(a.plan, Executor::kHost), a.plan.infer_contiguity, defects);
  std::string out;
  if (!a.graph.empty()) {
    if (!a.level.empty() && a.level != "scheduled")
      throw Error(ErrorCode::kUsage, "id graphs are drawn at level scheduled; leave the level out",
                  "--level " + a.level);
    out = pictures(file, programs, *parse_id_graph_kind(a.graph), format, defects);
  } else if (format == "svg" || format == "html") {
    throw Error(ErrorCode::kUsage, "say of which id graph with --graph", "--format " + format);
  } else if (a.level.empty()) {
    if (file.bundle && format == "text") out += describe_bundle(*file.bundle);
    out += formatted(file.module, format, false);
  } else if (a.level == "math") {
    Module m;
    m.graphs.push_back(main_graph(file.module));
    out = formatted(m, format, false);
  } else if (a.level == "cuda") {
    if (format == "dot") throw Error(ErrorCode::kUsage, "CUDA text has no drawing; draw level kernel", "--format dot");
    out = cuda_text(file, programs, file.bundle.has_value(), format == "json");
  } else if (a.level == "heuristics") {
    if (format == "dot")
      throw Error(ErrorCode::kUsage, "decisions have no drawing; leave the format out", "--format dot");
    out = decisions(programs.compiled(), format == "json");
  } else if (a.level == "plan") {
    if (format == "dot")
      throw Error(ErrorCode::kUsage, "a kernel plan has no drawing; draw level kernel", "--format dot");
    for (const Graph& g : programs.at(Stage::kScheduled).graphs) {
      if (!find_graph(programs.at(Stage::kKernel), g.name)) continue;
      const Graph scheduled = canonical_order(g);
      const std::string text = print_plan(plan_kernel(scheduled, {.defects = defects, .sizes = {}}));
      if (format == "json")
        out += JsonObject().add("kernel", g.name).add("plan", text).text() + "\n";
      else
        out += (out.empty() ? "" : "\n") + text;
    }
  } else {
    const Stage stage = a.level == "scheduled" ? Stage::kScheduled
                        : a.level == "kernel"  ? Stage::kKernel
                                               : Stage::kHost;
    Module m;
    try {
      m = programs.at(stage);
    } catch (const Error&) {
      if (const CompileAttempt* refused = programs.refused(); refused && stage == Stage::kScheduled)
        print_text(refused_schedule(*refused, format));
      throw;
    }
    if (stage == Stage::kHost) std::erase_if(m.graphs, [](const Graph& g) { return g.level != Level::kHost; });
    if (format == "text" && stage == Stage::kKernel) {
      const Module scheduled = programs.at(Stage::kScheduled);
      const BankNotes banks(programs.at(Stage::kHost), [&] { return default_arguments(file); });
      for (const Graph& g : m.graphs)
        out += (out.empty() ? "" : "\n") + comments(g, scheduled, false) +
               banks.beside(g.name, a.why ? print_with_checks(g, find_graph(scheduled, g.name), defects) : print(g));
    } else {
      out = formatted(m, format, stage == Stage::kScheduled);
    }
  }
  print_text(out);
  return 0;
}

}  // namespace fusebox::cli
