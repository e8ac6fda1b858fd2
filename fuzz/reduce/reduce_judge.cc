// Judges candidates, each in a child process.
#include <memory>
#include <utility>

#include "fuzz/reduce/reduce.h"
#include "fuzz/run/runner.h"
#include "ir/table/error.h"
#include "replay/device/module_loader.h"
#include "replay/gate/gate_workers.h"

namespace fusebox::fuzz {
namespace {

constexpr char kBetween = '\x1f';

// A GPU run needs a context and a compiled kernel.
constexpr uint64_t kGpuPatience = 6;

bool asks_gpu(size_t row) { return oracle_rows()[row].judge == gpu; }
// The file tests do not depend on the case and take a second together.
bool asks_files(size_t row) { return oracle_rows()[row].judge == files; }

// The findings of one oracle, or of all.
std::vector<Finding> judged_by(OracleRun& run, std::optional<size_t> row, WorkerNote& note) {
  for (size_t i = 0; i < oracle_rows().size(); ++i) {
    if (row ? *row != i : asks_files(i)) continue;
    note.begin(0, kFirstOracle + i, run.options().gpu ? kGpuPatience : 1);
    try {
      oracle_rows()[i].judge(run);
    } catch (const Error& e) {
      run.report(oracle_rows()[i].text, e, "the oracle itself");
    }
  }
  // The campaign reports a fusion whose unfused plan is refused; so does the shrinker.
  if (!row && !run.subject().steps() && run.refusal())
    run.findings.push_back({{"unfused", code_text(run.refusal()->code), ""}, run.refusal()->what()});
  return run.findings;
}

std::string write_finding(const Finding& f) {
  return f.signature.stage + kBetween + f.signature.check + kBetween + f.signature.place + kBetween + f.message;
}

std::optional<Finding> read_finding(const std::string& line) {
  std::string parts[4];
  size_t at = 0;
  for (size_t i = 0; i < 4; ++i) {
    const size_t end = i < 3 ? line.find(kBetween, at) : line.size();
    if (end == std::string::npos) return std::nullopt;
    parts[i] = line.substr(at, end - at);
    at = end + 1;
  }
  return Finding{{parts[0], parts[1], parts[2]}, parts[3]};
}

std::optional<Finding> pick(const std::vector<Finding>& findings, const std::string& signature) {
  for (const Finding& f : findings)
    if (text(f.signature) == signature) return f;
  return findings.empty() ? std::nullopt : std::optional(findings[0]);
}

}  // namespace

ReductionJudge::ReductionJudge(Defects defects, std::string signature, const ReduceOptions& options)
    : defects_(std::move(defects)), signature_(std::move(signature)), options_(options) {
  find_aten();  // once here instead of in each child
}

std::optional<Finding> ReductionJudge::judge(const Case& c, const Defects& defects) {
  std::optional<Finding> found;
  WorkerCalls calls;
  bool given = false;
  calls.next = [&]() -> std::optional<std::string> {
    if (std::exchange(given, true)) return std::nullopt;
    return "";
  };
  calls.work = [&](const std::string&, WorkerNote& note) -> std::string {
    try {
      note.begin(0, kFirstOracle + row_.value_or(0));
      if (options_.at) options_.at(c);
      const bool on_gpu = options_.on_gpu && (!row_ || asks_gpu(*row_));
      if (on_gpu) note.begin(0, kFirstOracle + row_.value_or(0), kGpuPatience);
      const std::unique_ptr<Device> gpu = !on_gpu ? nullptr : options_.gpu ? options_.gpu() : make_cuda_device();
      OracleRun run(c, {.defects = defects,
                        .step_limit = options_.step_limit,
                        .field_changes = kFieldChangesAlone,
                        .gpu = gpu.get()});
      const auto f = pick(judged_by(run, row_, note), signature_);
      return f ? write_finding(*f) : std::string();
    } catch (const Error&) {
      return std::string();  // the inputs do not fit the program
    }
  };
  calls.done = [&](const WorkerAnswer& a) {
    deadly_ = !a.death.empty();
    if (!deadly_)
      found = read_finding(a.answer);
    else
      found = Finding{{stage_of_part(a.part), check_of_death(a.death), ""}, "the process " + a.death};
  };
  WorkerOptions workers;
  workers.timeout_s = options_.case_seconds;
  workers.memory_bytes = options_.memory_bytes;
  workers.retry = false;
  run_workers(workers, calls);
  return found;
}

std::optional<Finding> ReductionJudge::judge(const Case& c) {
  const auto found = judge(c, defects_);
  if (row_ || !found || (!signature_.empty() && text(found->signature) != signature_)) return found;
  // Find the oracle that reports it. From now on only that one is asked.
  for (size_t i = 0; i < oracle_rows().size(); ++i) {
    // A try on the GPU takes a second, so ask it only about its own findings.
    if (asks_gpu(i) != (found->signature.stage == "gpu") || asks_files(i)) continue;
    row_ = i;
    if (const auto f = judge(c, defects_); f && f->signature == found->signature) return found;
  }
  row_.reset();
  return found;
}

bool ReductionJudge::shows(const Case& c) {
  const auto found = judge(c, defects_);
  if (!found || text(found->signature) != signature_) return false;
  return !sound_ || !judge(c, Defects());
}

}  // namespace fusebox::fuzz
