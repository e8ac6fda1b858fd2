// `fusebox fuzz --case FILE`: judges one program as a campaign judges its cases.
#include <fmt/format.h>
#include <utility>

#include "fuzz/campaign/campaign.h"
#include "fuzz/cli/commands.h"
#include "fuzz/reduce/reduce.h"
#include "fuzz/run/gpu_batch.h"
#include "ir/table/error.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"
#include "replay/gate/gate_workers.h"

namespace fusebox::cli {
namespace {

using fuzz::Finding;
using fuzz::KeptFinding;
using fuzz::Statistics;

std::string judge(fuzz::Case c, const fuzz::RunnerOptions& options, WorkerNote& note) {
  Statistics s;
  const auto at = [&](uint64_t number, uint64_t part) { note.begin(number, part); };
  std::vector<Finding> findings = fuzz::judge_case(c, options, 0, s, at);
  if (options.on_gpu && findings.empty() && s.valid > 0) {
    note.begin(0, fuzz::kGpuBatch, 6);
    findings = fuzz::judge_on_gpu(std::move(c), {.defects = options.defects}, {});
  }
  for (Finding& f : findings) {
    KeptFinding kept;
    kept.finding = std::move(f);
    kept.count = 1;
    add(s, std::move(kept));
  }
  return to_json(s);
}

// Judges several programs of one text together on a GPU, as a campaign does.
std::string judge_batch(std::vector<fuzz::Case> batch, const fuzz::RunnerOptions& options, WorkerNote& note) {
  Statistics s;
  const auto keep = [&](size_t i, Finding f) {
    KeptFinding kept;
    kept.finding = std::move(f);
    kept.finding.message = "@" + batch[i].fusion().name + ": " + kept.finding.message;
    kept.number = i;
    kept.count = 1;
    add(s, std::move(kept));
  };
  std::vector<fuzz::GpuCase> cases;
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto at = [&](uint64_t, uint64_t part) { note.begin(i, part); };
    for (Finding& f : fuzz::judge_case(batch[i], options, 0, s, at)) keep(i, std::move(f));
    if (!options.on_gpu) continue;
    fuzz::compile_case(cases.emplace_back(i, batch[i]).subject, options.defects);
  }
  fuzz::GpuBatchOptions how;
  how.at = [&](bool compiles, uint64_t number) { note.begin(number, fuzz::kGpuBatch, compiles ? 6 : 1); };
  if (options.on_gpu)
    for (fuzz::GpuVerdict& v : fuzz::judge_on_gpu(cases, {.defects = options.defects}, how).verdicts)
      for (Finding& f : v.findings) keep(v.number, std::move(f));
  return to_json(s);
}

}  // namespace

int fuzz_case(const FuzzArguments& a, const Common& common) {
  std::vector<fuzz::Case> batch = fuzz::load_batch(a.case_file);
  const fuzz::LoadedFinding file =
      batch.empty() ? fuzz::load_finding(a.case_file) : fuzz::LoadedFinding{batch[0], {}, ""};
  note_other_inputs(file);
  fuzz::sizes_of(file.subject.fusion(), file.subject.inputs());  // throws if the inputs do not fit the program
  fuzz::RunnerOptions options;
  options.on_gpu = a.on == "cuda";
  options.step_limit = fuzz::ReduceOptions().step_limit;  // one case may take its time
  options.field_changes = fuzz::kFieldChangesAlone;
  options.oracles = oracle_rows_of(a.oracles);
  if (!options.oracles.empty()) prepare_compiler(options.oracles, 1);
  options.defects = a.defects.empty() ? file.defects : parse_defects(a.defects);
  WorkerOptions workers;
  workers.timeout_s = a.case_time.empty() ? 20 : seconds_of(a.case_time, "--case-time");
  workers.memory_bytes = options.on_gpu ? 0 : a.memory_mib << 20;
  workers.retry = false;
  WorkerCalls calls;
  bool given = false;
  calls.next = [&]() -> std::optional<std::string> {
    if (std::exchange(given, true)) return std::nullopt;
    return "";
  };
  calls.work = [&](const std::string&, WorkerNote& note) {
    return batch.empty() ? judge(file.subject, options, note) : judge_batch(batch, options, note);
  };
  Statistics s;
  calls.done = [&](const WorkerAnswer& answer) {
    if (answer.death.empty()) {
      s = fuzz::statistics_of(parse_json(answer.answer));
      return;
    }
    KeptFinding dead;
    const std::string printed = answer.output.empty() ? "" : "; it printed: " + answer.output;
    dead.finding = {{fuzz::stage_of_part(answer.part), fuzz::check_of_death(answer.death), ""},
                    "the process " + answer.death + printed};
    dead.count = 1;
    add(s, std::move(dead));
  };
  run_workers(workers, calls);
  for (const KeptFinding& f : s.findings)
    print_text(common.json ? JsonObject()
                                     .add("signature", text(f.finding.signature))
                                     .add("message", f.finding.message)
                                     .add("file", a.case_file)
                                     .text() +
                                 "\n"
                           : fmt::format("finding {}\n  {}\n", text(f.finding.signature), f.finding.message));
  const bool ran = s.valid > 0;
  if (common.json)
    print_line(JsonObject()
                   .add("file", a.case_file)
                   .add("findings", static_cast<int64_t>(s.findings.size()))
                   .add("valid", ran)
                   .add("recorded", file.signature)
                   .add("defects", join(options.defects))
                   .text());
  else if (s.findings.empty())
    print_line(a.case_file + (ran ? ": nothing found" : ": refused, and nothing found") +
               (file.signature.starts_with("gpu ") && !options.on_gpu
                    ? "; what it records was found on a GPU: give --on cuda"
                    : ""));
  return s.findings.empty() ? 0 : 1;
}

}  // namespace fusebox::cli
