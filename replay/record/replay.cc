#include "replay/record/replay.h"

#include <algorithm>

#include "codegen/same_bits.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/host/host_program.h"
#include "passes/lower/lower.h"
#include "replay/record/record.h"
#include "replay/record/text_diff.h"

namespace fusebox {
namespace {

constexpr std::string_view kFroms[] = {"fusion", "scheduled", "kernel", "source"};
constexpr std::string_view kDigests[] = {"fusion", "concretized", "segments", "scheduled", "plan",   "kernel",
                                         "host",   "source",      "binary",   "crossings", "outputs"};
constexpr std::string_view kVerdicts[] = {"identical", "different", "not comparable"};

const Module& stage_of(const Bundle& b, Stage stage) {
  if (const Module* m = find_stage(b, stage)) return *m;
  throw Error(ErrorCode::kInvalidField,
              "the bundle holds no program of stage " + std::string(text(stage)) + "; replay it from an earlier one",
              "stages");
}

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::kInvalidField, what, "stages");
}

bool same_signature(const Graph& a, const Graph& b) {
  const auto dtypes = [](const Graph& g) {
    std::vector<std::pair<bool, Dtype>> all;
    for (ValueId v : inputs(g)) all.emplace_back(g.is_tensor(v), g[v].dtype);
    for (const auto& o : outputs(g)) all.emplace_back(g.is_tensor(o.value), g[o.value].dtype);
    return all;
  };
  return inputs(a).size() == inputs(b).size() && dtypes(a) == dtypes(b);
}

// The bundle's programs up to a stage, and the later ones made from them.
Compiled compiled_from(const Bundle& b, const Graph& fusion, ReplayFrom from, const Defects& defects) {
  Compiled c;
  const Module& segments = stage_of(b, Stage::kSegments);
  require(segments.segmentations.size() == 1, "stage segments holds one segmentation; record the run again");
  c.concretized = main_graph(stage_of(b, Stage::kConcretized));
  c.segmentation = segments.segmentations[0];
  // The bundle holds the segmentation beside a program of its own.
  Module cut;
  cut.graphs = {c.concretized};
  cut.segmentations = {c.segmentation};
  verify(cut);
  c.scheduled = stage_of(b, Stage::kScheduled).graphs;
  require(c.scheduled.size() == c.segmentation.segments.size(),
          "stage scheduled holds a program for each segment; record the run again");
  require(same_signature(c.concretized, fusion),
          "stage concretized has other inputs or outputs than the fusion; record the run again");
  const std::string* bits = find_value(b.options, "index_bits");
  c.index_bits = bits && *bits == "32" ? 32 : 64;
  if (from == ReplayFrom::kScheduled) {
    lower_segments(c, {.defects = defects, .digest_plans = true});
    c.host = build_host_program(c.concretized, c.segmentation, c.launches, defects);
    Module made;
    made.graphs.push_back(c.host);
    for (const Graph& kernel : c.kernels)
      if (!kernel.ops.empty()) made.graphs.push_back(kernel);
    verify(made);
    return c;
  }
  Module executable = stage_of(b, Stage::kKernel);
  size_t next = 0;
  for (const Segment& s : c.segmentation.segments) {
    const bool is_kernel = s.executor == SegmentExecutor::kKernel;
    require(!is_kernel || next < executable.graphs.size(),
            "stage kernel holds a program for each kernel segment; record the run again");
    c.kernels.push_back(is_kernel ? executable.graphs[next++] : Graph());
  }
  require(!stage_of(b, Stage::kHost).graphs.empty(), "stage host holds a host program; record the run again");
  c.host = stage_of(b, Stage::kHost).graphs.front();
  require(same_signature(c.host, fusion),
          "stage host has other inputs or outputs than the fusion; record the run again");
  // Verifies the launches against their kernels.
  executable.graphs.push_back(c.host);
  verify(executable);
  return c;
}

Run run_from(const Bundle& b, const Module& module, std::span<const Argument> arguments, const RunOptions& options,
             ReplayFrom from) {
  Run run;
  run.executor = options.executor;
  run.defects = options.defects;
  run.fusion = main_graph(module);
  bind_sizes(run.fusion, bound_inputs(arguments));
  describe_environment(run);
  run.digests.push_back({"fusion", digest(run.fusion)});
  try {
    run.compiled = compiled_from(b, run.fusion, from, options.defects);
    digest_stages(run, options.keep_sources);
    if (from == ReplayFrom::kSource) {
      std::vector<Digest> texts;
      for (KernelSource& s : run.sources) {
        const auto it = std::find_if(b.artifacts.begin(), b.artifacts.end(),
                                     [&](const Artifact& a) { return a.kernel == s.kernel && !a.cuda.empty(); });
        if (it == b.artifacts.end())
          throw Error(ErrorCode::kInvalidField, "the bundle holds no CUDA text of this kernel; replay it from kernel",
                      "@" + s.kernel);
        s.text = it->cuda;
        texts.push_back(digest(std::string_view(s.text)));
      }
      for (StageDigest& d : run.digests)
        if (d.name == "source") d.digest = combine(texts);
    }
    execute(run, arguments, options);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInvalidField) throw;
    run.failure = failure_of(e);
  }
  return run;
}

std::string failure_text(const std::optional<Failure>& f) {
  return f ? code_text(f->code) + " " + f->place + ": " + f->message + "\n" : "outputs\n";
}

template <class T>
std::string layout_text(const T& r) {
  std::string line = std::string(text(r.dtype)) + "[";
  for (size_t i = 0; i < r.shape.size(); ++i) line += (i ? ", " : "") + std::to_string(r.shape[i]);
  line += "] strides [";
  for (size_t i = 0; i < r.strides.size(); ++i) line += (i ? ", " : "") + std::to_string(r.strides[i]);
  return line + "]";
}

std::string outputs_text(const std::vector<OutputRecord>& outs) {
  std::string all;
  for (const OutputRecord& r : outs) all += "%" + r.name + " " + layout_text(r) + " " + text(r.digest) + "\n";
  return all;
}

std::string crossings_text(const std::vector<CrossingLayout>& list) {
  std::string all;
  for (const CrossingLayout& r : list) all += r.segment + " %" + r.value + " " + layout_text(r) + "\n";
  return all;
}

std::string sources_text(const std::vector<KernelSource>& sources) {
  std::string all;
  for (const KernelSource& s : sources) all += "// kernel " + s.kernel + "\n" + s.text;
  return all;
}

Digest combined(std::span<const Graph> graphs) {
  std::vector<Digest> parts;
  for (const Graph& g : graphs) parts.push_back(digest(g));
  return combine(parts);
}

// The digest of what the bundle itself holds of this name. None if it holds nothing that the digest is of.
std::optional<Digest> digest_in_bundle(const Bundle& b, std::string_view name) {
  if (name == "source") {
    std::vector<Digest> texts;
    for (const Artifact& a : b.artifacts)
      if (!a.cuda.empty()) texts.push_back(digest(std::string_view(a.cuda)));
    return texts.empty() ? std::nullopt : std::optional(combine(texts));
  }
  if (name == "outputs") {
    std::vector<Digest> parts;
    for (const OutputRecord& r : b.ranks[0].outputs) parts.push_back(r.digest);
    return combine(parts);
  }
  const auto at = std::ranges::find(stage_texts(), name);
  const Module* m = at == stage_texts().end() ? nullptr : find_stage(b, static_cast<Stage>(at - stage_texts().begin()));
  if (!m) return std::nullopt;
  if (name == text(Stage::kScheduled) || name == text(Stage::kKernel)) return combined(m->graphs);
  if (m->graphs.empty()) return std::nullopt;
  if (name != text(Stage::kSegments)) return digest(main_graph(*m));
  if (m->segmentations.size() != 1) return std::nullopt;
  return digest(m->graphs.front(), m->segmentations[0]);
}

class Comparer {
 public:
  Comparer(const Bundle& b, const Module& module, Replay& replay)
      : b_(b), rank_(b.ranks[0]), module_(module), replay_(replay), run_(replay.run) {}

  void compare() {
    for (const StageDigest& d : b_.digests) compare(d);
    compare_outcome();
  }

 private:
  const Digest* now(const std::string& stage) const {
    for (const StageDigest& d : run_.digests)
      if (d.name == stage) return &d.digest;
    return nullptr;
  }
  std::string environment(const std::vector<KeyValue>& list, std::string_view key) const {
    const std::string* value = find_value(list, key);
    return value ? *value : "none";
  }
  // Why two runs may differ from the binary on; empty if they may not.
  std::string other_executor() const {
    const std::string_view executor = text(run_.executor);
    return rank_.executor == executor ? "" : "recorded on " + rank_.executor + ", run on " + std::string(executor);
  }
  std::string other_device() const {
    for (const char* key : {"gpu", "nvrtc"}) {
      const std::string was = environment(rank_.environment, key), is = environment(run_.environment, key);
      if (was != is) return std::string(key) + " was " + was + ", is " + is;
    }
    return "";
  }
  bool runs_aten() const {
    const auto& segments = run_.compiled.segmentation.segments;
    return std::any_of(segments.begin(), segments.end(),
                       [](const Segment& s) { return s.executor == SegmentExecutor::kAten; });
  }

  void compare(const StageDigest& recorded) {
    if (std::ranges::find(kDigests, recorded.name) == std::end(kDigests))
      throw Error(ErrorCode::kDamagedBundle, "the bundle has a digest of `" + recorded.name + "`, which is no stage",
                  "digests");
    StageVerdict v{recorded.name, Verdict::kIdentical, {}, {}};
    const Digest* digest = now(recorded.name);
    require_own_digest(recorded, digest);
    if (recorded.name == "outputs" && (run_.failure || rank_.failure)) return;
    if (recorded.name == "binary" || recorded.name == "outputs") v.why = other_executor();
    if (v.why.empty() && recorded.name == "binary") v.why = other_device();
    if (v.why.empty() && recorded.name == "outputs" && rank_.executor == "cuda" && !digest_is(digest, recorded))
      v.why = other_device();
    if (v.why.empty() && !digest)
      v.why = run_.executor == Executor::kAten ? "ATen runs the program itself, without this stage"
              : run_.failure
                  ? "the run failed before it: " + code_text(run_.failure->code) + " " + run_.failure->message
                  : "this replay has no such stage";
    if (v.why.empty() && recorded.name == "outputs" && !digest_is(digest, recorded)) {
      if (runs_aten())
        v.why = within_bounds("from a segment that ATen runs");
      else if (has_other_numerics())
        v.why = within_bounds("by another version of the numerics");
    }
    if (!v.why.empty())
      v.verdict = Verdict::kNotComparable;
    else if (*digest != recorded.digest)
      v.verdict = Verdict::kDifferent;
    add(std::move(v));
  }

  // The stage was computed again and has the recorded digest. What the bundle holds of it must have this digest too.
  // Where the new digest differs, the verdict says so, and a person may bless it: canonical bytes may have changed.
  void require_own_digest(const StageDigest& recorded, const Digest* is) const {
    if (!digest_is(is, recorded)) return;
    const auto held = digest_in_bundle(b_, recorded.name);
    // Stage host repeats the kernels.
    const Module* host = recorded.name == text(Stage::kKernel) ? find_stage(b_, Stage::kHost) : nullptr;
    const auto repeated = host && host->graphs.size() > 1 ? combined(std::span(host->graphs).subspan(1)) : *is;
    if ((!held || *held == *is) && repeated == *is) return;
    throw Error(ErrorCode::kDamagedBundle,
                "what the bundle holds of " + recorded.name + " has not the recorded digest, which a replay has",
                "digests");
  }

  static bool digest_is(const Digest* d, const StageDigest& recorded) { return d && *d == recorded.digest; }

  // A bundle without the option is older than the first version.
  bool has_other_numerics() const {
    const std::string* recorded = find_value(b_.options, "numerics");
    return !recorded || *recorded != std::to_string(kNumericsVersion);
  }

  // Bits computed by ATen may differ between its versions, and those of exact functions between versions of the numerics.
  // Then the bounds decide.
  std::string within_bounds(const std::string& where) {
    const auto arguments = bundle_arguments(b_);
    try {
      for (const CheckedOutput& c : check_outputs(run_, arguments))
        if (!c.comparison.ok) return "";
    } catch (const Error& e) {
      if (e.code != ErrorCode::kModuleMissing) throw;
      return "";
    }
    return "other bits, " + where + "; every output is within its bound";
  }

  void compare_outcome() {
    if (!run_.failure && !rank_.failure) return;
    StageVerdict v{"outcome", Verdict::kIdentical, {}, {}};
    const bool same = run_.failure && rank_.failure && run_.failure->code == rank_.failure->code &&
                      run_.failure->place == rank_.failure->place;
    if (!same) {
      const auto is_finding = [](const std::optional<Failure>& f) {
        return f && f->code >= ErrorCode::kUnalignedVector && f->code <= ErrorCode::kCompileFailure;
      };
      if (!other_executor().empty() && (is_finding(run_.failure) || is_finding(rank_.failure)))
        v = {"outcome", Verdict::kNotComparable, other_executor() + ", which fail in their own ways", {}};
      else
        v.verdict = Verdict::kDifferent;
    }
    add(std::move(v));
  }

  void add(StageVerdict v) {
    if (v.verdict == Verdict::kDifferent && replay_.identical()) v.difference = difference(v.stage);
    replay_.stages.push_back(std::move(v));
  }

  std::string difference(const std::string& stage) const {
    std::string was, is;
    for (size_t i = 0; i < stage_texts().size(); ++i) {
      if (stage_texts()[i] != stage) continue;
      const Module* recorded = find_stage(b_, static_cast<Stage>(i));
      if (!recorded) return "";
      was = print(*recorded), is = print(stage_module(run_, module_, static_cast<Stage>(i)));
    }
    if (stage == "source") {
      std::vector<KernelSource> recorded;
      for (const Artifact& a : b_.artifacts)
        if (!a.cuda.empty()) recorded.push_back({a.kernel, a.cuda});
      was = sources_text(recorded), is = sources_text(run_.sources);
    } else if (stage == "outputs") {
      was = outputs_text(rank_.outputs), is = outputs_text(output_records(run_));
    } else if (stage == "crossings") {
      was = crossings_text(rank_.crossings), is = crossings_text(run_.crossings);
    } else if (stage == "outcome") {
      was = failure_text(rank_.failure), is = failure_text(run_.failure);
    } else if (was.empty() && is.empty()) {
      return "the bundle holds the digest of this stage, and no text of it\n";
    }
    if (was == is)
      return "what the bundle holds of this stage is the same, but has not the digest that the bundle says: the digest "
             "was changed, or another version of Fusebox made it\n";
    return text_diff(was, is);
  }

  const Bundle& b_;
  const Rank& rank_;
  const Module& module_;
  Replay& replay_;
  const Run& run_;
};

}  // namespace

std::optional<ReplayFrom> parse_replay_from(std::string_view word) {
  for (size_t i = 0; i < std::size(kFroms); ++i)
    if (kFroms[i] == word) return static_cast<ReplayFrom>(i);
  return std::nullopt;
}

std::span<const std::string_view> digest_names() { return kDigests; }

std::string_view text(Verdict v) { return kVerdicts[static_cast<size_t>(v)]; }

const StageVerdict* Replay::first_difference() const {
  for (const StageVerdict& v : stages)
    if (v.verdict == Verdict::kDifferent) return &v;
  return nullptr;
}

Replay replay(const Bundle& bundle, const ReplayOptions& options) {
  const Module& module = stage_of(bundle, Stage::kFusion);
  const std::vector<Argument> arguments = bundle_arguments(bundle);
  RunOptions run;
  const auto recorded = parse_executor(bundle.ranks[0].executor);
  if (!options.executor && !recorded)
    throw Error(
        ErrorCode::kInvalidField,
        "the bundle was recorded on `" + bundle.ranks[0].executor + "`, which is not known; name an executor with --on",
        "ranks[0].executor");
  run.executor = options.executor ? *options.executor : *recorded;
  run.threads = options.threads;
  const std::string* defects = find_value(bundle.options, "defects");
  run.defects = !options.defects.empty() || !defects ? options.defects : parse_defect_list(*defects);
  run.keep_sources = find_digest(bundle, "source") != nullptr || options.from == ReplayFrom::kSource;
  if (options.from == ReplayFrom::kSource) {
    if (!options.trust_artifacts)
      throw Error(ErrorCode::kUntrusted,
                  "CUDA text of a bundle is compiled only where you trust it; add --trust-artifacts", "artifacts");
    if (run.executor != Executor::kCuda)
      throw Error(ErrorCode::kUsage, "CUDA text runs on a GPU alone; add --on cuda, or replay from kernel",
                  "--from source");
    run.run_sources = true;
  }
  if (options.from != ReplayFrom::kFusion && run.executor == Executor::kAten)
    throw Error(ErrorCode::kUsage, "ATen runs the fusion itself; replay from fusion", "--from");

  // Tensors that ATen makes get the recorded layouts, so the kernels that read it are the recorded ones everywhere.
  if (const Rank& rank = bundle.ranks[0]; !rank.failure && !rank.crossings.empty()) run.crossings = rank.crossings;

  Replay result;
  if (options.from == ReplayFrom::kFusion) {
    take_recorded_plan(bundle, run);
    result.run = run_program(module, arguments, run);
  } else {
    result.run = run_from(bundle, module, arguments, run, options.from);
  }
  Comparer(bundle, module, result).compare();
  return result;
}

}  // namespace fusebox
