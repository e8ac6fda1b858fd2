// `fusebox-fuzz`: a campaign in one process. Exit codes are those of `fusebox`: 0 nothing was found, 1 findings, 2 bad
// usage, 3 an internal error of the campaign itself.
//
//   fusebox-fuzz --time 60 --seed 7 --out findings --oracle aten,schedules
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include "fuzz/runner.h"
#include "ir/defect.h"
#include "ir/error.h"
#include "ir/print.h"

namespace fusebox::fuzz {
namespace {

struct Arguments {
  uint64_t seed = 1, runs = 0;
  double seconds = 0;
  std::string oracles, out;
  std::vector<std::string> defects;
  size_t stop_after = 0, max_ops = 40;
  uint32_t mutate_one_in = 2;
  bool list_oracles = false, list_defects = false, coverage = false, print_case = false;
};

void print_findings(const Statistics& s) {
  for (const KeptFinding& f : s.findings) {
    std::printf("finding %s: %llu times, first after %llu cases and %.1f s\n  %s\n", text(f.finding.signature).c_str(),
                static_cast<unsigned long long>(f.count), static_cast<unsigned long long>(f.number + 1), f.seconds,
                f.finding.message.c_str());
    if (!f.file.empty()) std::printf("  %s\n", f.file.c_str());
  }
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void print_statistics(const Statistics& s) {
  std::printf("ops: %.1f a case, %.1f %% of the draws taken\n",
              percent(double(s.ops), 100 * double(s.cases - s.mutated)), percent(double(s.ops), double(s.op_attempts)));
  std::printf("schedules: %.1f %% of the drawn ones compile as they are\n",
              percent(double(s.drawn_legal), double(s.cases - s.mutated)));
  std::printf("mutations: %llu cases, %.1f %% valid\n", static_cast<unsigned long long>(s.mutated),
              percent(double(s.mutated_valid), double(s.mutated)));
  for (const auto& [code, count] : s.refusals)
    std::printf("refused %s: %llu\n", code.c_str(), static_cast<unsigned long long>(count));
  for (size_t i = 0; i < s.judged.size(); ++i)
    if (s.judged[i] > 0)
      std::printf("oracle %s: %llu cases\n", std::string(oracle_rows()[i].text).c_str(),
                  static_cast<unsigned long long>(s.judged[i]));
  if (s.compared > 0)
    std::printf("elements compared with ATen: %lld, %.2f %% pass only because a jump is near, %.2f %% are free\n",
                static_cast<long long>(s.compared), percent(double(s.ambiguous), double(s.compared)),
                percent(double(s.unconstrained), double(s.compared)));
}

int run(const Arguments& a) {
  if (a.list_oracles) {
    for (const OracleRow& row : oracle_rows())
      std::printf("%-12s %s\n", std::string(row.text).c_str(), std::string(row.summary).c_str());
    return 0;
  }
  if (a.list_defects) {
    for (const DefectRow& row : defect_rows())
      std::printf("%-34s %s\n", std::string(row.text).c_str(), std::string(row.breaks).c_str());
    return 0;
  }
  RunnerOptions options;
  options.seed = a.seed;
  options.runs = a.runs;
  options.seconds = a.seconds;
  options.oracles = parse_oracles(a.oracles);
  options.out = a.out;
  options.defects = parse_defects(a.defects);
  options.stop_after = a.stop_after;
  options.mutate_one_in = a.mutate_one_in;
  options.cases.fusion.max_ops = a.max_ops;
  if (a.print_case) {
    const DrawnCase drawn = generate_case(a.seed, options.cases);
    std::printf("%s", print(drawn.value.module).c_str());
    return drawn.refusal ? 1 : 0;
  }
  if (!a.out.empty()) std::filesystem::create_directories(a.out);
  const bool live = isatty(STDERR_FILENO) != 0;
  double shown = 0;
  options.progress = [&](const Statistics& s) {
    if (!live || s.seconds - shown < 0.5) return;
    shown = s.seconds;
    std::fprintf(stderr, "\r%s  ", progress_line(s).c_str());
  };
  const Statistics s = run_cases(options);
  if (live) std::fprintf(stderr, "\r");
  std::printf("%s\n", progress_line(s).c_str());
  print_statistics(s);
  if (a.coverage)
    for (const CoverageRow& row : s.coverage.rows())
      std::printf("coverage %s: %s: %llu\n", row.group.c_str(), row.name.c_str(),
                  static_cast<unsigned long long>(row.count));
  print_findings(s);
  return s.findings.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::fuzz

int main(int argc, char** argv) {
  using namespace fusebox;
  fuzz::Arguments a;
  CLI::App app("Fusebox's fuzzer: random programs and schedules, judged by oracles");
  app.add_option("--seed", a.seed, "of the campaign; the same seed gives the same cases");
  app.add_option("--runs", a.runs, "how many cases; 1000 where no time is given either");
  app.add_option("--time", a.seconds, "how long, in seconds");
  app.add_option("--oracle", a.oracles, "oracles with commas between; all, each as often as it pays");
  app.add_option("--out", a.out, "a folder for a bundle of each finding");
  app.add_option("--defect", a.defects, "a seeded defect that the campaign should find");
  app.add_option("--stop-after", a.stop_after, "so many findings");
  app.add_option("--max-ops", a.max_ops, "of a fusion");
  app.add_option("--mutate-one-in", a.mutate_one_in, "cases that are mutated from earlier ones; 0: none");
  app.add_flag("--list-oracles", a.list_oracles, "the oracles, and what each says");
  app.add_flag("--list-defects", a.list_defects, "the seeded defects, and what each breaks");
  app.add_flag("--coverage", a.coverage, "every row of the coverage table");
  app.add_flag("--print-case", a.print_case, "the case of the seed as text, without running it");
  // A case is far too small for ATen's threads, which would spin between two of them.
  setenv("OMP_NUM_THREADS", "1", 0);
  try {
    app.parse(argc, argv);
    return fuzz::run(a);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s %s: %s\n", code_text(e.code).c_str(), e.place.c_str(), e.what());
    return row_of(e.code).outcome == Outcome::kInternal ? 3 : 2;
  }
}
