// `fusebox fuzz`: runs a campaign, prints its figures and its findings.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "fuzz/base/machine.h"
#include "fuzz/campaign/campaign.h"
#include "fuzz/cli/commands.h"
#include "fuzz/report/report.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"
#include "replay/data/file.h"
#include "replay/device/module_loader.h"

namespace fusebox::cli {
namespace {

using fuzz::CampaignState;
using fuzz::CoverageRow;
using fuzz::KeptFinding;
using fuzz::Statistics;

double percent(uint64_t part, uint64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string finding_line(const KeptFinding& f, const Common& common) {
  if (common.json)
    return JsonObject()
               .add("signature", text(f.finding.signature))
               .add("stage", f.finding.signature.stage)
               .add("check", f.finding.signature.check)
               .add("place", f.finding.signature.place)
               .add("count", static_cast<int64_t>(f.count))
               .add("case", static_cast<int64_t>(f.number))
               .add("seconds", f.seconds)
               .add("message", f.finding.message)
               .add("lineage", f.lineage)
               .add("file", f.file)
               .text() +
           "\n";
  return fmt::format("finding {}: {} time{}, first in case {}\n  {}\n{}", text(f.finding.signature), f.count,
                     f.count == 1 ? "" : "s", f.number, f.finding.message, f.file.empty() ? "" : "  " + f.file + "\n");
}

std::string coverage_line(const CoverageRow& row, const Common& common) {
  const auto count = static_cast<int64_t>(row.count);
  return common.json ? JsonObject().add("group", row.group).add("row", row.name).add("count", count).text()
                     : fmt::format("coverage {}: {}: {}", row.group, row.name, count);
}

double seconds(uint64_t microseconds) { return 1e-6 * static_cast<double>(microseconds); }

std::string figures(const Statistics& s) {
  const uint64_t drawn = s.cases - s.mutated;
  std::string out = fmt::format(
      "{:.1f} ops a drawn case; {:.1f} % of its schedules compile as drawn; {} mutated, {:.1f} % of them valid\n",
      drawn > 0 ? static_cast<double>(s.ops) / static_cast<double>(drawn) : 0, percent(s.drawn_legal, drawn), s.mutated,
      percent(s.mutated_valid, s.mutated));
  if (s.compared > 0)
    out += fmt::format("{} elements compared with ATen: {:.2f} % pass only because a jump is near, {:.2f} % are free\n",
                       s.compared, percent(s.ambiguous, s.compared), percent(s.unconstrained, s.compared));
  if (s.planned > 0)
    out += fmt::format(
        "{} programs planned automatically: {:.1f} % have an unfused piece; {:.1f} % of {} segments are unfused\n",
        s.planned, percent(s.partly_unfused, s.planned), percent(s.unfused_segments, s.segments), s.segments);
  if (s.gpu_cases > 0)
    out += fmt::format(
        "{} cases on the GPU, by {} kernels of different text; all processes together compiled {:.1f} s, waited {:.1f} "
        "s for their turn, ran {:.1f} s\n",
        s.gpu_cases, s.gpu_kernels, seconds(s.gpu_compile_us), seconds(s.gpu_wait_us), seconds(s.gpu_run_us));
  return out;
}

std::string summary_object(const Statistics& s, const FuzzArguments& a, bool interrupted, const std::string& page) {
  JsonObject o;
  o.raw("seed", std::to_string(a.seed)).raw("cases", std::to_string(s.cases)).raw("valid", std::to_string(s.valid));
  o.add("seconds", s.seconds).add("cases_per_second", s.cases_per_second()).add("valid_rate", s.valid_rate());
  o.add("covered", static_cast<int64_t>(s.coverage.covered()));
  o.add("coverage_rows", static_cast<int64_t>(s.coverage.row_count()));
  o.raw("compared", std::to_string(s.compared)).raw("ambiguous", std::to_string(s.ambiguous));
  o.raw("unconstrained", std::to_string(s.unconstrained)).raw("died", std::to_string(s.died));
  o.raw("planned", std::to_string(s.planned)).raw("partly_unfused", std::to_string(s.partly_unfused));
  o.raw("segments", std::to_string(s.segments)).raw("unfused_segments", std::to_string(s.unfused_segments));
  o.raw("gpu_cases", std::to_string(s.gpu_cases)).raw("gpu_kernels", std::to_string(s.gpu_kernels));
  if (s.gpu_cases > 0)
    o.add("gpu_compile_seconds", seconds(s.gpu_compile_us))
        .add("gpu_wait_seconds", seconds(s.gpu_wait_us))
        .add("gpu_run_seconds", seconds(s.gpu_run_us));
  JsonObject refusals, judged;
  for (const auto& [code, count] : s.refusals) refusals.raw(code, std::to_string(count));
  for (size_t i = 0; i < s.judged.size(); ++i) judged.raw(fuzz::oracle_rows()[i].text, std::to_string(s.judged[i]));
  o.raw("refusals", refusals.text()).raw("judged", judged.text());
  o.add("findings", static_cast<int64_t>(s.findings.size())).add("interrupted", interrupted);
  return o.add("report", page).text();
}

}  // namespace

int fuzz_campaign(const FuzzArguments& a, int64_t gpu_bytes, const Common& common) {
  fuzz::CampaignOptions options;
  options.runner.seed = a.seed;
  options.runner.runs = a.runs;
  options.runner.seconds = seconds_of(a.time, "--time");
  options.runner.oracles = oracle_rows_of(a.oracles);
  options.runner.on_gpu = a.on == "cuda";
  const fuzz::Machine machine = fuzz::this_machine();
  options.jobs =
      a.jobs > 0 ? a.jobs : fuzz::default_jobs(machine, {.on_gpu = options.runner.on_gpu, .gpu_bytes = gpu_bytes});
  options.runner.gpu_threads = std::max(1, machine.processors / options.jobs);
  std::optional<fuzz::GpuTurns> turns;
  if (options.runner.on_gpu && a.gpu_turns > 0 && a.gpu_turns < options.jobs)
    options.runner.gpu_turns = &turns.emplace(a.gpu_turns);
  options.runner.out = a.out;
  options.runner.defects = parse_defects(a.defects);
  options.runner.stop_after = a.stop_after;
  // A fortieth of the time, but enough for one case, and short enough that nobody interrupts again.
  options.grace_s = options.runner.seconds > 0 ? std::clamp(options.runner.seconds / 40, 0.5, 5.0) : 3;
  if (!a.case_time.empty()) options.case_seconds = seconds_of(a.case_time, "--case-time");
  // A GPU driver takes more address space than there is memory.
  options.memory_bytes = options.runner.on_gpu ? 0 : a.memory_mib << 20;
  options.stops = interrupts;
  ProgressLine progress(common.json);
  options.progress = [&](const Statistics& s) { progress.show(progress_line(s)); };
  count_interrupts();
  // Loads ATen before the workers fork, so that none of them has to load it.
  find_aten();
  prepare_compiler(options.runner.oracles, a.runs);
  const CampaignState state = run_campaign(options);
  progress.clear();
  const Statistics& s = state.statistics;
  std::string page;
  if (!a.out.empty()) {
    page = a.out + "/report.html";
    write_file(page, std::string_view(campaign_report(state, a.out)));
  }
  if (a.coverage)
    for (const CoverageRow& row : s.coverage.rows()) print_line(coverage_line(row, common));
  for (const KeptFinding& f : s.findings) print_text(finding_line(f, common));
  if (common.json) {
    print_line(summary_object(s, a, interrupts() > 0, page));
  } else {
    print_text(figures(s) + progress_line(s) + "\n");
    if (!page.empty()) print_line(page);
    if (interrupts() > 0 && !a.out.empty()) note("stopped; the same command goes on from here");
  }
  return s.findings.empty() ? 0 : 1;
}

}  // namespace fusebox::cli
