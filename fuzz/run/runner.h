// The cases of a campaign: drawn, judged and counted, in this process.
//
// Cases are numbered, and come in blocks. A block has a pool of its own, from which its later cases are mutated; so a
// case depends on the campaign's seed and its number alone, whichever process runs its block.
//
// Invariants: without a time limit, the same options give the same cases and the same findings; a finding of a
// signature that was seen is counted, not kept again; a case that is refused with a coded error is no finding and is
// judged no further. A case that was begun and not ended, because somebody asked to stop, is not counted.
//
//   Statistics s = run_cases({.seed = 1, .runs = 1000});
//   s.valid, s.findings, s.cases_per_second()
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/run/gpu_batch.h"
#include "fuzz/run/statistics.h"

namespace fusebox::fuzz {

inline constexpr uint64_t kBlockCases = 256;

struct RunnerOptions {
  uint64_t seed = 1;
  uint64_t runs = 0;                 // 0: as many as the time allows
  double seconds = 0;                // 0: no limit; both 0: 1000 cases
  std::vector<size_t> oracles = {};  // rows; empty: all, each as often as its row says
  bool on_gpu = false;               // the oracle `gpu` too, on the valid cases of a block together (gpu_batch.h)
  int gpu_threads = 1;               // that compile for it
  uint64_t gpu_cases = 32;           // so many cases at once; no result depends on it
  std::function<std::unique_ptr<Device>()> gpu = {};  // empty: a CUDA device
  GpuTurns* gpu_turns = nullptr;
  std::string out = {};        // a folder for a bundle of each finding; empty: none is written
  uint32_t mutate_one_in = 2;  // cases that are mutated from earlier ones; 0: none
  size_t stop_after = 0;       // findings; 0: never
  Defects defects = {};
  CaseOptions cases = {};
  int64_t step_limit = int64_t{1} << 20;  // thread-instructions of a launch; what runs longer is refused
  int field_changes = JudgeOptions().field_changes;
  // After each case, with what there is so far; may be empty.
  std::function<void(const Statistics&)> progress = {};
};

Statistics run_cases(const RunnerOptions& options);

// What a case is at: drawn, being saved, compiled for the GPU with others of its block, judged by an oracle (its row +
// kFirstOracle).
inline constexpr uint64_t kDrawing = 0, kSaving = 1, kGpuBatch = 2, kFirstOracle = 3;
// `generate`, `bundle`, `gpu`, or the oracle's name.
std::string stage_of_part(uint64_t part);

// A case that ended the process that was at it. It is passed over, and if it could be drawn it is shown. (At kGpuBatch
// any case that is compiled with it may be to blame: none is passed over, but each is compiled alone.)
struct DeadlyCase {
  uint64_t number = 0;
  uint64_t part = kDrawing;
  bool operator==(const DeadlyCase&) const = default;
};

struct BlockRange {
  uint64_t block = 0;
  uint64_t first = 0;          // cases before it were counted already; they are run for the pool's sake
  uint64_t end = kBlockCases;  // both within the block
  std::vector<DeadlyCase> deadly = {};
};

struct BlockHooks {
  // Before each part of each case, which may take so many times as long as others.
  std::function<void(uint64_t number, uint64_t part, uint64_t patience)> at = {};
  std::function<bool(const Statistics&)> go_on = {};  // after each case, or all that were on the GPU together
  std::function<bool()> stops = {};                   // in the midst of them: those are not counted
  std::function<void(Statistics)> told = {};          // cases that are counted, now and then; the result has the rest
  std::function<void(const DeadlyCase&, const Case& c)> deadly = {};        // of the range, each that could be drawn
  std::function<void(const Case&, uint64_t number, const Finding&)> found;  // each, of a signature that was seen too
  std::function<bool(const Finding&, uint64_t number)> wants_bundle = {};   // whether KeptFinding::saved is made
  // The process has no GPU any more, and should end. Must be there with `on_gpu`.
  std::function<void(uint64_t number, const Finding&)> device_lost = {};
};

// `cases` of the result: those that were counted and not told, the last ones from `first` on.
Statistics run_block(const RunnerOptions& options, const BlockRange& range, const BlockHooks& hooks);

// One case through the oracles of the options but `gpu`, counted in `s`.
std::vector<Finding> judge_case(const Case& c, const RunnerOptions& options, uint64_t number, Statistics& s,
                                const std::function<void(uint64_t, uint64_t)>& at = {});

// The code with which a worker ends that has no GPU any more.
constexpr int kDeviceLostExit = 78;
// The check of a signature for a worker's death (WorkerAnswer::death): `crash SIGSEGV`, `timeout`, `memory`.
std::string check_of_death(const std::string& death);
// The case as a bundle: the program, the schedule, the inputs and the run, with the lineage and the signature among
// its options.
Bundle finding_bundle(const Case& c, const Finding& finding, const Defects& defects);
// Its bytes; or text, where what was found is in the way of the bundle itself.
FindingFile finding_file(const Case& c, const Finding& finding, const Defects& defects);
// The same without a run, of a case that ends the process.
FindingFile deadly_file(const Case& c, const Finding& finding, const Defects& defects);
// The cases as one text, each under a name with its number: what `fuzz --case` judges together on a GPU.
std::string print_batch(std::span<const GpuCase> cases);
// Writes `saved` to the folder under a name made of the signature, and forgets the bytes. The name is the finding's
// `file`, or one that no other finding of `s` has.
// A batch goes beside it, its name ending in .batch.fir.
void write_finding(const std::string& folder, KeptFinding& finding, const Statistics& s);

}  // namespace fusebox::fuzz
