// Judging of candidates, each in a child process.
#include "fuzz/reduce.h"
#include "ir/error.h"
#include "replay/gate_workers.h"
#include "replay/module_loader.h"

namespace fusebox::fuzz {
namespace {

constexpr char kBetween = '\x1f';

// The findings of one oracle, or of all.
std::vector<Finding> judged_by(OracleRun& run, std::optional<size_t> row) {
  for (size_t i = 0; i < oracle_rows().size(); ++i) {
    if (row && *row != i) continue;
    try {
      oracle_rows()[i].judge(run);
    } catch (const Error& e) {
      run.report(oracle_rows()[i].text, e, "the oracle itself");
    }
  }
  // What the campaign says of a fusion whose unfused plan is refused.
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
  find_aten();  // once, not in each child
}

std::optional<Finding> ReductionJudge::judge(const Case& c, const Defects& defects) const {
  std::optional<Finding> found;
  const auto work = [&](size_t) -> std::string {
    try {
      OracleRun run(c, {.defects = defects, .step_limit = options_.step_limit});
      const auto f = pick(judged_by(run, row_), signature_);
      return f ? write_finding(*f) : std::string();
    } catch (const Error& e) {
      return std::string();  // the inputs do not fit the program
    }
  };
  run_in_workers(1, {.jobs = 1, .timeout_s = options_.case_seconds}, work, [&](WorkerAnswer a) {
    found = a.death.empty() ? read_finding(a.answer) : Finding{{"worker", a.death, ""}, a.death};
  });
  return found;
}

std::optional<Finding> ReductionJudge::judge(const Case& c) {
  const auto found = judge(c, defects_);
  if (row_ || !found || (!signature_.empty() && text(found->signature) != signature_)) return found;
  // Which oracle says so: from now on, it alone is asked.
  for (size_t i = 0; i < oracle_rows().size(); ++i) {
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
