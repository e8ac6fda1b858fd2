#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "fuzz/cli/commands.h"
#include "fuzz/runner.h"
#include "ir/defect.h"
#include "ir/error.h"
#include "ir/print.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"

namespace fusebox::cli {
namespace {

using fuzz::CoverageRow;
using fuzz::KeptFinding;
using fuzz::OracleRow;
using fuzz::Statistics;

int list_oracles(const Common& common) {
  for (const OracleRow& row : fuzz::oracle_rows())
    print_line(common.json ? JsonObject()
                                 .add("oracle", row.text)
                                 .add("one_in", int64_t{row.every})
                                 .add("summary", row.summary)
                                 .text()
                           : fmt::format("{:<12} {}", row.text, row.summary));
  return 0;
}

int list_defects(const Common& common) {
  for (const DefectRow& row : defect_rows())
    print_line(common.json ? JsonObject()
                                 .add("defect", row.text)
                                 .add("breaks", row.breaks)
                                 .add("restates", row.restates)
                                 .text()
                           : fmt::format("{:<28} {}", row.text, row.breaks));
  return 0;
}

int print_case(uint64_t seed, const Common& common) {
  const fuzz::DrawnCase drawn = fuzz::generate_case(seed, {});
  const std::string text = print(drawn.value.module);
  if (!common.json) {
    print_text(text);
    if (drawn.refusal) report_error(*drawn.refusal, common);
  } else {
    JsonObject o;
    o.add("seed", std::to_string(seed)).add("text", text).add("valid", !drawn.refusal);
    if (drawn.refusal) o.raw("error", error_object(drawn.refusal->code, drawn.refusal->what(), drawn.refusal->place));
    print_line(o.text());
  }
  return drawn.refusal ? 1 : 0;
}

// 60, 60s, 5m, 1h
double seconds_of(const std::string& text) {
  if (text.empty()) return 0;
  char* end = nullptr;
  const double count = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == text.c_str() || scale == 0 || !(count > 0) || count > 1e9)
    throw Error(ErrorCode::kUsage, fmt::format("`{}` is no length of time; write 60s, 5m or 1h", text), "--time");
  return count * scale;
}

void print_findings(const Statistics& s, const Common& common) {
  for (const KeptFinding& f : s.findings) {
    if (common.json)
      print_line(JsonObject()
                     .add("signature", text(f.finding.signature))
                     .add("count", static_cast<int64_t>(f.count))
                     .add("cases", static_cast<int64_t>(f.cases))
                     .add("message", f.finding.message)
                     .add("file", f.file)
                     .text());
    else
      print_text(fmt::format("finding {}: {} times, first after {} cases and {:.1f} s\n  {}\n{}",
                             text(f.finding.signature), f.count, f.cases, f.seconds, f.finding.message,
                             f.file.empty() ? "" : "  " + f.file + "\n"));
  }
}

int campaign(const FuzzArguments& a, const Common& common) {
  fuzz::RunnerOptions options;
  options.seed = a.seed;
  options.runs = a.runs;
  options.seconds = seconds_of(a.time);
  options.oracles = fuzz::parse_oracles(fmt::format("{}", fmt::join(a.oracles, ",")));
  options.out = a.out;
  options.defects = parse_defects(a.defects);
  if (!a.out.empty()) std::filesystem::create_directories(a.out);
  const Statistics s = fuzz::run_cases(options);
  if (!common.json) print_line(progress_line(s));
  if (a.coverage)
    for (const CoverageRow& row : s.coverage.rows())
      print_line(common.json ? JsonObject()
                                   .add("group", row.group)
                                   .add("row", row.name)
                                   .add("count", static_cast<int64_t>(row.count))
                                   .text()
                             : fmt::format("coverage {}: {}: {}", row.group, row.name, row.count));
  print_findings(s, common);
  return s.findings.empty() ? 0 : 1;
}

}  // namespace

int fuzz_command(const FuzzArguments& a, Common& common) {
  if (a.list_oracles) return list_oracles(common);
  if (a.list_defects) return list_defects(common);
  if (a.has_print_case) return print_case(a.print_case, common);
  // A case is far too small for ATen's threads, which would spin between two of them.
  ::setenv("OMP_NUM_THREADS", "1", 0);
  return campaign(a, common);
}

}  // namespace fusebox::cli
