// `fusebox fuzz --score`: measures which seeded defects are found, and how soon.
#include <cmath>
#include <fmt/format.h>

#include "fuzz/base/machine.h"
#include "fuzz/campaign/score.h"
#include "fuzz/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"
#include "replay/data/file.h"
#include "replay/device/module_loader.h"

namespace fusebox::cli {
namespace {

using fuzz::ScoreRow;
using fuzz::ScoreTry;

std::string row_object(const ScoreRow& row) {
  std::vector<std::string> tries;
  for (const ScoreTry& t : row.tries) {
    JsonObject o;
    o.raw("seed", std::to_string(t.seed)).add("detected", t.detected).raw("cases", std::to_string(t.cases));
    o.raw("reached", t.reached > 0 ? std::to_string(t.reached) : "null").add("seconds", t.seconds);
    o.raw("clean_too", std::to_string(t.clean_too));
    o.add("signature", t.detected ? text(t.finding.signature) : "").add("message", t.finding.message);
    tries.push_back(o.add("lineage", t.lineage).add("file", t.file).text());
  }
  JsonObject o;
  o.add("defect", text(row.defect)).add("detected", static_cast<int64_t>(row.detected()));
  o.add("seeds", static_cast<int64_t>(row.tries.size())).add("median_reached", row.median_reached());
  o.add("median_cases", row.median_cases()).add("median_seconds", row.median_seconds());
  return o.raw("tries", json_list(tries)).text();
}

std::string number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
}

constexpr const char* kHeading = "defect                          reached  detected     cases   seconds  signature\n";

std::string row_text(const ScoreRow& row) {
  std::string signature;
  for (const ScoreTry& t : row.tries)
    if (signature.empty() && t.detected) signature = text(t.finding.signature);
  return fmt::format("{:<30} {:>8}  {:>4} of {} {:>9} {:>9}  {}\n", text(row.defect), number(row.median_reached(), 0),
                     row.detected(), row.tries.size(), number(row.median_cases(), 0), number(row.median_seconds(), 2),
                     signature);
}

}  // namespace

int fuzz_score(const FuzzArguments& a, const Common& common) {
  fuzz::ScoreOptions options;
  options.runner.seed = a.seed;
  options.runner.runs = a.runs;
  options.runner.oracles = oracle_rows_of(a.oracles);
  options.defects = parse_defects(a.defects).list();
  options.seeds = a.seeds;
  options.seconds = a.time.empty() && a.runs > 0 ? 0 : seconds_of(a.time.empty() ? "60" : a.time, "--time");
  options.jobs = a.jobs > 0 ? a.jobs : fuzz::default_jobs(fuzz::this_machine(), {});
  if (!a.case_time.empty()) options.case_seconds = seconds_of(a.case_time, "--case-time");
  options.memory_bytes = a.memory_mib << 20;
  options.out = a.out;
  options.stops = interrupts;
  ProgressLine progress(common.json);
  options.progress = [&](size_t finished, size_t all) {
    progress.show(fmt::format("{} of {} campaigns", finished, all));
  };
  bool is_headed = common.json;
  options.done = [&](const ScoreRow& row) {
    progress.clear();
    if (!is_headed) print_text(kHeading);
    is_headed = true;
    print_text(common.json ? row_object(row) + "\n" : row_text(row));
  };
  count_interrupts();
  find_aten();
  prepare_compiler(options.runner.oracles, a.runs);
  const std::vector<ScoreRow> rows = score(options);
  progress.clear();
  size_t detected = 0;
  std::string all;
  for (const ScoreRow& row : rows) {
    detected += row.detected() == row.tries.size() ? 1 : 0;
    all += row_object(row) + "\n";
  }
  if (!a.out.empty()) write_file(a.out + "/score.jsonl", std::string_view(all));
  if (common.json)
    print_line(JsonObject()
                   .add("defects", static_cast<int64_t>(rows.size()))
                   .add("detected", static_cast<int64_t>(detected))
                   .add("interrupted", interrupts() > 0)
                   .add("summary", summary(rows))
                   .text());
  else
    print_line(summary(rows) + (interrupts() > 0 ? " (interrupted)" : ""));
  return detected == rows.size() ? 0 : 1;
}

}  // namespace fusebox::cli
