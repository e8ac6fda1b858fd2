// The seeded runner: cases drawn, judged and counted in this process, for so many cases or so long. What CI, the
// command line and campaigns use.
//
// Invariants: without a time limit, the same options give the same cases and the same findings; a finding of a
// signature that was seen is counted, not kept again; a case that is refused with a coded error is no finding and is
// judged no further.
//
//   Statistics s = run_cases({.seed = 1, .runs = 1000});
//   s.valid, s.findings, s.cases_per_second()
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuzz/coverage.h"
#include "fuzz/oracle.h"

namespace fusebox::fuzz {

struct KeptFinding {
  Finding finding;
  Case subject;  // the first that showed it
  uint64_t count = 0;
  double seconds = 0;  // to the first
  uint64_t cases = 0;  // to the first
  std::string file;    // the bundle, where one was written
};

struct Statistics {
  uint64_t cases = 0, valid = 0, launch_refused = 0;
  uint64_t op_attempts = 0, ops = 0;
  uint64_t drawn_legal = 0;  // schedules that compiled as they were drawn
  uint64_t unscheduled = 0;  // cases that run unfused, as no schedule was found
  uint64_t mutated = 0, mutated_valid = 0;
  int64_t compared = 0, ambiguous = 0, unconstrained = 0;  // elements
  double seconds = 0;
  std::map<std::string, uint64_t> refusals;  // by code
  std::vector<uint64_t> judged;              // by oracle
  std::vector<KeptFinding> findings;         // by signature, in the order of their first case
  Coverage coverage;

  double cases_per_second() const { return seconds > 0 ? static_cast<double>(cases) / seconds : 0; }
  double valid_rate() const { return cases > 0 ? static_cast<double>(valid) / static_cast<double>(cases) : 0; }
};

struct RunnerOptions {
  uint64_t seed = 1;
  uint64_t runs = 0;                 // 0: as many as the time allows
  double seconds = 0;                // 0: no limit; both 0: 1000 cases
  std::vector<size_t> oracles = {};  // rows; empty: all, each as often as its row says
  std::string out = {};              // a folder for a bundle of each finding; empty: none is written
  uint32_t mutate_one_in = 2;        // cases that are mutated from earlier ones; 0: none
  size_t stop_after = 0;             // findings; 0: never
  Defects defects = {};
  CaseOptions cases = {};
  int64_t step_limit = int64_t{1} << 22;  // thread-instructions of a launch; what runs longer is refused
  // After each case, with what there is so far; may be empty.
  std::function<void(const Statistics&)> progress = {};
};

Statistics run_cases(const RunnerOptions& options);

// One case through the oracles of the options, counted in `s`.
std::vector<Finding> judge_case(const Case& c, const RunnerOptions& options, uint64_t number, Statistics& s);

// The case as a bundle: the program, the schedule, the inputs and the run, with the lineage and the signature among
// its options.
Bundle finding_bundle(const Case& c, const Finding& finding, const Defects& defects);

// `12.3 s, 4567 cases, 371/s, 97.1 % valid, coverage 1204/1460, 0 findings`
std::string progress_line(const Statistics& s);

}  // namespace fusebox::fuzz
