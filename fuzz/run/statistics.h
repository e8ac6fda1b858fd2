// What a campaign has counted and found, added up over parts, and as JSON between processes and between runs.
//
// Invariants: adding up parts in any order gives the same counts, and of each signature the finding of the lowest case
// number; findings stand in the order of their case numbers.
//
//   Statistics all;
//   add(all, statistics_of(parse_json(answer)));
//   progress_line(all)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/base/json_value.h"
#include "fuzz/coverage/coverage.h"
#include "fuzz/oracle/oracle.h"

namespace fusebox::fuzz {

// A finding as a file holds it: a bundle, or text where no bundle can be made.
struct FindingFile {
  std::string bytes;
  bool is_text = false;
};

struct KeptFinding {
  Finding finding;
  Case subject;         // the first that showed it; without a program where another process or run found it
  uint64_t number = 0;  // of the first case that showed it
  uint64_t count = 0;   // cases
  double seconds = 0;   // to the first
  std::string lineage;  // of the first
  FindingFile saved;    // of the first; empty where nobody asked for it
  std::string batch;    // text: the cases that were on a GPU before it, and it (print_batch); empty: it was alone
  std::string file;     // where it was written; empty: nowhere
};

struct Statistics {
  uint64_t cases = 0, valid = 0, launch_refused = 0;
  uint64_t op_attempts = 0, ops = 0;
  uint64_t drawn_legal = 0;  // schedules that compiled as they were drawn
  uint64_t unscheduled = 0;  // cases that run unfused, as no schedule was found
  uint64_t mutated = 0, mutated_valid = 0;
  uint64_t gpu_cases = 0, gpu_kernels = 0;                       // judged on a GPU, and compiled for that
  uint64_t gpu_compile_us = 0, gpu_wait_us = 0, gpu_run_us = 0;  // of all processes together
  uint64_t died = 0;                                             // cases that ended their worker
  uint64_t compared = 0, ambiguous = 0, unconstrained = 0;       // elements
  double seconds = 0;
  std::map<std::string, uint64_t> refusals;  // by code
  std::vector<uint64_t> judged;              // by oracle
  std::vector<KeptFinding> findings;
  Coverage coverage;

  double cases_per_second() const { return seconds > 0 ? static_cast<double>(cases) / seconds : 0; }
  double valid_rate() const { return cases > 0 ? static_cast<double>(valid) / static_cast<double>(cases) : 0; }
};

// Counted, and kept if no case before it showed the same signature.
void add(Statistics& s, KeptFinding finding);
// All but `seconds`, which are the caller's: parts may run beside each other.
void add(Statistics& s, Statistics part);

std::string to_json(const Statistics& s);
// Throws kInvalidField, also where the tables were others.
Statistics statistics_of(const JsonValue& json);

// `12.3 s, 4567 cases, 371/s, 97.1 % valid, coverage 1204/1460, 0 findings`
std::string progress_line(const Statistics& s);

}  // namespace fusebox::fuzz
