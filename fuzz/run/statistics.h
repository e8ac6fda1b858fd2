// The counts and findings of a campaign. They can be added up, and converted to and from JSON between processes and
// between runs.
// Invariants: adding up parts in any order gives the same counts, and of each signature the finding of the lowest case
// Invariants: adding parts in any order gives the same counts and, for each signature, the finding with the lowest case
// number. Findings are ordered by case number.
//   Statistics all;
//   add(all, statistics_of(parse_json(answer)));
//   progress_line(all)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/coverage/coverage.h"
#include "fuzz/oracle/oracle.h"
#include "replay/data/json_value.h"

namespace fusebox::fuzz {

// A finding's file: a bundle, or text if no bundle can be made.
struct FindingFile {
  std::string bytes;
  bool is_text = false;
};

struct KeptFinding {
  Finding finding;
  Case subject;         // the first case; without a program if another process or run found it
  uint64_t number = 0;  // of the first case
  uint64_t count = 0;   // cases
  double seconds = 0;   // until the first case
  std::string lineage;  // of the first case
  FindingFile saved;    // of the first case; empty if nobody asked for it
  std::string batch;    // text: it and the cases before it on the GPU (print_batch); empty: it was alone
  std::string file;     // its path; empty: not written
};

struct Statistics {
  uint64_t cases = 0, valid = 0, launch_refused = 0;
  uint64_t op_attempts = 0, ops = 0;
  uint64_t drawn_legal = 0;  // schedules that compiled as drawn
  uint64_t unscheduled = 0;  // cases that ran unfused because no schedule was found
  uint64_t mutated = 0, mutated_valid = 0;
  uint64_t gpu_cases = 0, gpu_kernels = 0;                       // judged on a GPU; kernels compiled for that
  uint64_t gpu_compile_us = 0, gpu_wait_us = 0, gpu_run_us = 0;  // summed over all processes
  uint64_t planned = 0, partly_unfused = 0;     // automatic plans, and those with an op that no scheduler takes
  uint64_t segments = 0, unfused_segments = 0;  // of the automatic plans
  uint64_t died = 0;                            // cases that ended their worker
  uint64_t compared = 0, ambiguous = 0, unconstrained = 0;  // elements
  double seconds = 0;
  std::map<std::string, uint64_t> refusals;  // by error code
  std::vector<uint64_t> judged;              // by oracle
  std::vector<KeptFinding> findings;
  Coverage coverage;

  double cases_per_second() const { return seconds > 0 ? static_cast<double>(cases) / seconds : 0; }
  double valid_rate() const { return cases > 0 ? static_cast<double>(valid) / static_cast<double>(cases) : 0; }
};

// Counts the finding, and keeps it if it is the first with its signature.
void add(Statistics& s, KeptFinding finding);
// Adds everything but `seconds`, because parts may run at the same time.
void add(Statistics& s, Statistics part);

std::string to_json(const Statistics& s);
// Throws kInvalidField, also if the tables have changed.
Statistics statistics_of(const JsonValue& json);

// `12.3 s, 4567 cases, 371/s, 97.1 % valid, coverage 1204/1460, 0 findings`
std::string progress_line(const Statistics& s);

}  // namespace fusebox::fuzz
