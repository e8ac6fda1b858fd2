#include "replay/gate/gate.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <new>

#include "ir/table/error.h"
#include "ir/text/print.h"
#include "replay/data/file.h"
#include "replay/gate/gate_workers.h"
#include "replay/record/record.h"
#include "replay/record/text_diff.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/limits.h"

namespace fusebox {
namespace {

constexpr std::string_view kStatuses[] = {"passed", "different", "fixed", "error", "skipped", "blessed"};
constexpr size_t kDifferenceLines = 200;

std::string head_of(const std::string& text) {
  size_t at = 0, lines = 0, rest = 0;
  for (; at < text.size() && lines < kDifferenceLines; ++lines) at = std::min(text.find('\n', at), text.size() - 1) + 1;
  rest = static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), '\n'));
  return rest == 0 ? text : text.substr(0, at) + fmt::format("… {} more lines; `fusebox replay` shows all\n", rest);
}

std::string place_text(const std::optional<Failure>& f) {
  return f ? code_text(f->code) + (f->place.empty() ? "" : " " + f->place) : "outputs";
}
std::string sentence(const std::optional<Failure>& f) { return f ? place_text(f) + ": " + f->message : "outputs"; }

bool is_lack(ErrorCode code) { return code == ErrorCode::kNoDevice || code == ErrorCode::kModuleMissing; }

Bundle read_bundle(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path, limits::kFileBytes);
  return decode_bundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// The bundle with the results of this run. It keeps its inputs, and options and step lists that others added.
Bundle record_again(const Bundle& old, const Replay& r, const std::string& reason) {
  Bundle b = make_bundle(r.run, *find_stage(old, Stage::kFusion), {}, {});
  b.ranks[0].inputs = old.ranks[0].inputs;
  b.ranks.insert(b.ranks.end(), old.ranks.begin() + 1, old.ranks.end());
  for (const StepList& list : old.steps)
    if (list.name != "concretize" && list.name != "schedule") b.steps.push_back(list);
  constexpr std::string_view kOfTheRun[] = {"plan",    "device",       "infer",    "index_bits",
                                            "defects", "cuda_options", "numerics", "blessed"};
  for (const KeyValue& o : old.options)
    if (std::find(std::begin(kOfTheRun), std::end(kOfTheRun), o.key) == std::end(kOfTheRun)) b.options.push_back(o);
  b.options.push_back({"blessed", reason});
  return b;
}

std::vector<GateChange> changes_of(const Bundle& b, const Replay& r) {
  std::vector<GateChange> changes;
  for (const StageDigest& d : r.run.digests) {
    const Digest* was = find_digest(b, d.name);
    if (!was || *was != d.digest) changes.push_back({d.name, was ? text(*was) : "none", text(d.digest)});
  }
  for (const StageDigest& d : b.digests)
    if (std::none_of(r.run.digests.begin(), r.run.digests.end(), [&](const auto& now) { return now.name == d.name; }))
      changes.push_back({d.name, text(d.digest), "none"});
  const std::string was = place_text(b.ranks[0].failure), is = place_text(r.run.failure);
  if (was != is) changes.push_back({"outcome", was, is});
  return changes;
}

// The difference of the kernels' text, which is what people look at, whichever stage differs first.
std::string kernel_difference(const Bundle& b, const Replay& r) {
  const Module* was = find_stage(b, Stage::kKernel);
  if (!was || r.run.compiled.kernels.empty()) return "";
  const std::string text =
      text_diff(print(*was), print(stage_module(r.run, *find_stage(b, Stage::kFusion), Stage::kKernel)));
  return text.empty() ? "" : "kernel (- recorded, + now):\n" + head_of(text);
}

void judge(GateResult& r, const GateOptions& options) {
  Bundle b = read_bundle(r.path);
  r.program = b.program;
  if (b.ranks.empty()) throw Error(ErrorCode::kInvalidField, "the bundle records no run; record one anew", "ranks");
  const std::optional<Failure> failed = b.ranks[0].failure;
  r.records_bug = failed || find_value(b.options, "defects");
  if (!options.only.empty())
    std::erase_if(b.digests, [&](const StageDigest& d) {
      return std::find(options.only.begin(), options.only.end(), d.name) == options.only.end();
    });

  const Replay again = replay(b, options.replay);
  const std::optional<Failure>& fails = again.run.failure;
  r.executor = text(again.run.executor);
  r.stages = again.stages;
  if (fails && is_lack(fails->code) && (!failed || failed->code != fails->code))
    throw Error(fails->code, fails->message, fails->place);
  const StageVerdict* first = again.first_difference();
  // A run on another executor does not show that a bug is gone.
  const bool is_fixed = failed && !fails && b.ranks[0].executor == r.executor;
  if (!first && !is_fixed) {
    r.status = GateStatus::kPassed;
    if (failed && fails) r.message = "fails as recorded: " + sentence(failed);
    return;
  }
  r.stage = first ? first->stage : "outcome";
  r.changes = changes_of(b, again);
  if (first) r.difference = head_of(first->difference);
  if (r.stage != "kernel") r.difference += kernel_difference(b, again);
  r.status = is_fixed ? GateStatus::kFixed : GateStatus::kDifferent;
  if (r.status == GateStatus::kFixed)
    r.message = "fixed: it failed with " + sentence(failed) + ", and runs now; bless it to keep it passing";
  else if (place_text(failed) != place_text(fails))
    r.message = "was recorded with " + sentence(failed) + ", gives " + sentence(fails);
  else
    r.message = "differs at " + r.stage + (failed ? ", and still fails with " + place_text(failed) : "");
  if (options.bless_reason.empty()) return;
  if (fails && !failed)
    r.message += "; it ran before, and a failure is not blessed: mend it, or record it anew with `fusebox run`";
  else
    r.rewritten = encode(record_again(b, again, options.bless_reason));
}

void put(std::string& to, std::string_view field) {
  const uint64_t size = field.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof size).append(field);
}

}  // namespace

std::string_view text(GateStatus s) { return kStatuses[static_cast<size_t>(s)]; }
std::span<const std::string_view> gate_stages() { return digest_names(); }

std::vector<std::string> find_bundles(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) throw Error(ErrorCode::kFileRead, path + " is not there; check the path", path);
    if (!fs::is_directory(status)) {
      found.push_back(path);
      continue;
    }
    fs::recursive_directory_iterator at(path, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code ignored;
      if (at->path().extension() == ".fuse" && !at->is_directory(ignored)) found.push_back(at->path().string());
    }
    if (error) throw Error(ErrorCode::kFileRead, path + " cannot be read whole: " + error.message(), path);
  }
  if (found.empty())
    throw Error(ErrorCode::kUsage, "no .fuse file lies there, and a gate over nothing lets everything through",
                paths.empty() ? "" : paths[0]);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

GateResult gate_bundle(const std::string& path, const GateOptions& options) {
  GateResult r;
  r.path = path;
  try {
    judge(r, options);
  } catch (const Error& e) {
    // An executor that the caller names has to be there.
    const bool may_skip = options.allow_skips && !options.replay.executor;
    r.status = is_lack(e.code) && may_skip ? GateStatus::kSkipped : GateStatus::kError;
    r.message = code_text(e.code) + (e.place.empty() ? "" : " " + e.place) + ": " + e.what();
  } catch (const std::bad_alloc&) {
    r.status = GateStatus::kError;
    r.message = "memory ran out";
  } catch (const std::exception& e) {
    r.status = GateStatus::kError;
    r.message = code_text(ErrorCode::kInternal) + ": " + e.what();
  }
  return r;
}

std::string pack(const GateResult& r) {
  std::string out;
  const std::string flags = {static_cast<char>(r.status), static_cast<char>(r.records_bug)};
  for (const std::string* s :
       {&flags, &r.path, &r.program, &r.executor, &r.stage, &r.message, &r.difference, &r.rewritten})
    put(out, *s);
  put(out, std::to_string(r.stages.size()));
  for (const StageVerdict& v : r.stages) {
    put(out, v.stage);
    put(out, std::string(1, static_cast<char>(v.verdict)));
    put(out, v.why);
  }
  for (const GateChange& c : r.changes)
    for (const std::string* s : {&c.stage, &c.was, &c.is}) put(out, *s);
  return out;
}

GateResult unpack_gate_result(std::string_view packed) {
  std::vector<std::string> fields;
  while (!packed.empty()) {
    uint64_t size = 0;
    if (packed.size() < sizeof size) break;
    std::memcpy(&size, packed.data(), sizeof size);
    packed.remove_prefix(sizeof size);
    fields.emplace_back(packed.substr(0, size));
    packed.remove_prefix(std::min<size_t>(size, packed.size()));
  }
  size_t at = 0;
  const auto next = [&]() -> std::string { return at < fields.size() ? std::move(fields[at++]) : std::string(); };
  GateResult r;
  const std::string flags = next();
  if (flags.size() != 2) throw Error(ErrorCode::kInternal, "a worker answered something else than a result", "gate");
  r.status = static_cast<GateStatus>(flags[0]);
  r.records_bug = flags[1] != 0;
  for (std::string* s : {&r.path, &r.program, &r.executor, &r.stage, &r.message, &r.difference, &r.rewritten})
    *s = next();
  for (size_t stages = std::stoul("0" + next()); stages > 0 && at < fields.size(); --stages) {
    StageVerdict v{next(), Verdict::kIdentical, {}, {}};
    v.verdict = static_cast<Verdict>(next().at(0));
    v.why = next();
    r.stages.push_back(std::move(v));
  }
  while (at < fields.size()) {
    GateChange c{next(), next(), next()};
    r.changes.push_back(std::move(c));
  }
  return r;
}

void gate(const std::vector<std::string>& paths, const GateOptions& options,
          const std::function<void(const GateResult&)>& done, const std::function<void(size_t, size_t)>& progress) {
  std::vector<GateResult> results(paths.size());
  std::vector<bool> arrived(paths.size());
  size_t told = 0, count = 0, failed = 0;
  const bool blesses = !options.bless_reason.empty();
  run_in_workers(
      paths.size(), {.jobs = options.jobs, .timeout_s = options.timeout_s},
      [&](size_t i) { return pack(gate_bundle(paths[i], options)); },
      [&](WorkerAnswer a) {
        GateResult& r = results[a.task];
        if (a.death.empty()) {
          r = unpack_gate_result(a.answer);
        } else {
          r.message = "the replay " + std::string(a.death.starts_with("killed") ? "was " : "") + a.death;
          r.difference = a.output;
        }
        r.path = paths[a.task];
        r.seconds = a.seconds;
        arrived[a.task] = true;
        failed += r.ok() ? 0 : 1;
        progress(++count, failed);
        for (; !blesses && told < results.size() && arrived[told]; ++told) done(results[told]);
      });
  if (!blesses) return;
  bless(results, options.bless_reason);
  for (const GateResult& r : results) done(r);
}

}  // namespace fusebox
