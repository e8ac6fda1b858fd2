// The score: runs a campaign for each seeded defect until it finds something that does not show without the defect.
//
// Invariants: a finding counts if the same oracles find nothing in its case without the defect. The seed alone
// determines the cases and the case of detection. Seconds are processor time of the worker alone, so other work on the
// machine changes them little.
//
//   for (const ScoreRow& row : score({.seeds = 3, .seconds = 60})) row.detected(), row.median_seconds()
#pragma once

#include "fuzz/campaign/campaign.h"

namespace fusebox::fuzz {

// One defect under one seed.
struct ScoreTry {
  uint64_t seed = 0;
  bool detected = false;
  uint64_t cases = 0;      // cases run, with the one of detection
  uint64_t reached = 0;    // cases run until the broken rule was first asked for; 0: never
  uint64_t clean_too = 0;  // cases with findings that also show without the defect
  double seconds = 0;
  Finding finding;
  std::string lineage, file;
  FindingFile saved;
};

struct ScoreRow {
  Defect defect = {};
  std::vector<ScoreTry> tries;  // by seed

  size_t detected() const;
  // Medians over the seeds; infinite if half of them or more detect nothing.
  double median_seconds() const;
  double median_cases() const;
  double median_reached() const;  // infinite: the rule was never reached
};

struct ScoreOptions {
  RunnerOptions runner = {};         // seed: the first; runs: per try; 0: until its time is up
  std::vector<Defect> defects = {};  // empty: all
  int seeds = 3;
  double seconds = 60;  // per try; 0: no limit, if `runs` has one
  int jobs = 1;
  double case_seconds = 20;
  int64_t memory_bytes = int64_t{4} << 30;
  std::string out = {};             // a folder for one finding per defect: NAME.fuse
  std::function<int()> stops = {};  // as in CampaignOptions
  // Called after each block with the numbers of finished and of all tries.
  std::function<void(size_t, size_t)> progress = {};
  std::function<void(const ScoreRow&)> done = {};  // called with each row, in order, when its tries are finished
};

// Rows in the order of the defects. An interrupted row holds the results so far. Throws kModuleMissing if this build
// has no defects.
std::vector<ScoreRow> score(const ScoreOptions& options);

// `detected 98 of 111 with every seed, 3 with some; median 0.6 s, slowest 31.2 s (vector-tail)`
std::string summary(const std::vector<ScoreRow>& rows);
double median(std::vector<double> values);

}  // namespace fusebox::fuzz
