// The score: for each seeded defect a campaign, until something is found that is not there without the defect.
//
// Invariants: a finding counts if its case, judged by the same oracles without the defect, gives none; cases and the
// case of detection depend on the seed alone. Seconds are of the processor, of the worker alone: other work beside it
// does not change them much.
//
//   for (const ScoreRow& row : score({.seeds = 3, .seconds = 60})) row.detected(), row.median_seconds()
#pragma once

#include "fuzz/campaign/campaign.h"

namespace fusebox::fuzz {

// One defect under one seed.
struct ScoreTry {
  uint64_t seed = 0;
  bool detected = false;
  uint64_t cases = 0;      // run, the one of detection included
  uint64_t reached = 0;    // cases until the broken rule was first asked for; 0: it never was
  uint64_t clean_too = 0;  // cases with findings that are there without the defect as well
  double seconds = 0;
  Finding finding;
  std::string lineage, file;
  FindingFile saved;
};

struct ScoreRow {
  Defect defect = {};
  std::vector<ScoreTry> tries;  // by seed

  size_t detected() const;
  // Over the seeds; infinite where half of them or more detect nothing.
  double median_seconds() const;
  double median_cases() const;
  double median_reached() const;  // infinite: never
};

struct ScoreOptions {
  RunnerOptions runner = {};         // seed: the first; runs: of one try; 0: until its time is up
  std::vector<Defect> defects = {};  // empty: all
  int seeds = 3;
  double seconds = 60;  // of one try; 0: no limit, where `runs` has one
  int jobs = 1;
  double case_seconds = 20;
  int64_t memory_bytes = int64_t{4} << 30;
  std::string out = {};             // a folder for the finding of each defect: NAME.fuse
  std::function<int()> stops = {};  // as a campaign's
  // After each block: tries that are finished, and all.
  std::function<void(size_t, size_t)> progress = {};
  std::function<void(const ScoreRow&)> done = {};  // each row, in their order, when its tries are finished
};

// Rows in the order of the defects; those that were interrupted hold what there was. Throws kModuleMissing where this
// build has no defects.
std::vector<ScoreRow> score(const ScoreOptions& options);

// `detected 98 of 111 with every seed, 3 with some; median 0.6 s, slowest 31.2 s (vector-tail)`
std::string summary(const std::vector<ScoreRow>& rows);
double median(std::vector<double> values);

}  // namespace fusebox::fuzz
