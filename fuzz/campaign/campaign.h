// A campaign: the cases of a seed, block by block, in worker processes that may die, with a state from which it goes
// on another day.
//
// Invariants:
// - which cases there are, and what each gives, depends on the configuration alone: not on the number of workers, nor
//   on where the campaign was interrupted;
// - a case that kills its worker, takes too long or too much memory is a finding, and is passed over;
// - a finding of the GPU is judged again from its file, in a process of its own: where that shows nothing, its check
//   begins with `batch`, and what was on the GPU before it is kept beside it;
// - the state file is whole at any time; what it counts is what its findings' files hold.
//
//   CampaignState s = run_campaign({.runner = {.seed = 7, .runs = 100000, .out = "found"}, .jobs = 2});
//   s.statistics.findings                     // bundles in found/findings; found/campaign.json is the state
//   run_campaign(...)                         // the same options: it is done; more runs: it goes on
#pragma once

#include <map>

#include "fuzz/run/runner.h"

namespace fusebox::fuzz {

struct CampaignOptions {
  // `seconds` count from this call; `runs` are those of the whole campaign. Findings go to `out`/findings.
  RunnerOptions runner = {};
  int jobs = 1;
  double case_seconds = 20;                 // what takes longer is a finding; 0: no limit
  int64_t memory_bytes = int64_t{4} << 30;  // of a worker's data; 0: no limit
  double grace_s = 3;  // after the time is over, or somebody asked to stop: what takes longer is ended, and not counted
  // How often somebody asked to stop: once, it ends after the cases that run now; twice, at once. May be empty.
  std::function<int()> stops = {};
  std::function<void(const Statistics&)> progress = {};  // about ten times a second; may be empty
  // In a worker, before each part of each case, in tests: a place to die.
  std::function<void(uint64_t number, uint64_t part)> at = {};
};

// The campaign at one moment, for the chart.
struct CampaignSample {
  double seconds = 0;
  uint64_t cases = 0, covered = 0, findings = 0;
};

// A block of which `done` cases were counted.
struct PartialBlock {
  uint64_t done = 0;
  std::vector<DeadlyCase> deadly;
};

struct CampaignState {
  std::string configuration;  // all that decides about the cases
  Statistics statistics;      // `seconds` of all runs together
  uint64_t next_block = 0;    // those before it are done but for the partial ones
  std::map<uint64_t, PartialBlock> partial;
  std::vector<CampaignSample> series;
};

// Throws kUsage where the folder holds a campaign of another configuration, and what reading its state throws.
CampaignState run_campaign(const CampaignOptions& options);

// -- the state file (campaign_state.cc)
std::string configuration_of(const RunnerOptions& options);
std::string to_json(const CampaignState& state);
CampaignState campaign_state_of(const JsonValue& json);
std::string state_path(const std::string& folder);
// A sample for now, if it is time for one; thinned out, so that there are never more than a few hundred.
void add_sample(CampaignState& state, bool is_last);

}  // namespace fusebox::fuzz
