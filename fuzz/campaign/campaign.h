// A campaign judges the cases of a seed, block by block, in worker processes that may die. It keeps a state file, from
// which a later run goes on.
//
// Invariants:
// - the configuration alone determines the cases and their results, whatever the number of workers and interruptions;
// - a case that kills its worker, takes too long or takes too much memory is a finding, and the campaign goes on;
// - a finding of the GPU is judged again from its file, in a process of its own. If it does not show there, its check
//   begins with `batch`, and the earlier cases on the GPU are saved beside it;
// - the state file is there from the start, is complete at any time, and its counts match the files of its findings;
// - a folder has one campaign at a time (folder_lock.h).
//
//   CampaignState s = run_campaign({.runner = {.seed = 7, .runs = 100000, .out = "found"}, .jobs = 2});
//   s.statistics.findings                     // bundles in found/findings; found/campaign.json is the state
//   run_campaign(...)                         // with the same options: it is done; with more runs: it goes on
#pragma once

#include <map>

#include "fuzz/run/runner.h"

namespace fusebox::fuzz {

struct CampaignOptions {
  // `seconds` count from this call; `runs` count over the whole campaign. Findings go to `out`/findings.
  RunnerOptions runner = {};
  int jobs = 1;
  double case_seconds = 20;                 // a case that takes longer is a finding; 0: no limit
  int64_t memory_bytes = int64_t{4} << 30;  // of a worker's data; 0: no limit
  double grace_s = 3;                       // after the end, cases that take longer are killed and not counted
  // How often somebody asked to stop. Once: it ends after the cases that run now. Twice: at once. May be empty.
  std::function<int()> stops = {};
  std::function<void(const Statistics&)> progress = {};  // about ten times a second; may be empty
  // For tests: a worker calls it before each part of each case, and it may die there.
  std::function<void(uint64_t number, uint64_t part)> at = {};
};

// The campaign at one moment, for the chart.
struct CampaignSample {
  double seconds = 0;
  uint64_t cases = 0, covered = 0, findings = 0;
};

// A block whose first `done` cases are counted.
struct PartialBlock {
  uint64_t done = 0;
  std::vector<DeadlyCase> deadly;
};

struct CampaignState {
  std::string configuration;  // everything that determines the cases
  Statistics statistics;      // `seconds` of all runs together
  uint64_t next_block = 0;    // all blocks before it are done, except the partial ones
  std::map<uint64_t, PartialBlock> partial;
  std::vector<CampaignSample> series;
};

// Throws kUsage if the folder holds a campaign of another configuration, or another process runs one there; kFileWrite
// if the folder cannot be made. Passes on errors of reading its state, with the file's path as place.
CampaignState run_campaign(const CampaignOptions& options);

// -- the state file (campaign_state.cc)
std::string configuration_of(const RunnerOptions& options);
std::string to_json(const CampaignState& state);
// Throws kNewerVersion for another format, and kInvalidField for a state that no campaign can have.
CampaignState campaign_state_of(const JsonValue& json);
std::string state_path(const std::string& folder);
// Adds a sample if enough time has passed since the last one. Thins the series to at most a few hundred.
void add_sample(CampaignState& state, bool is_last);

}  // namespace fusebox::fuzz
