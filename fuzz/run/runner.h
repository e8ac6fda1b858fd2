// Draws, judges and counts the cases of a campaign in this process.
//
// Cases are numbered and come in blocks. A block's later cases are mutated from a pool that belongs to the block. So
// the campaign's seed and the case's number determine a case, whichever process runs its block.
//
// Invariants: without a time limit, the same options give the same cases and findings; a further finding with a known
// signature is counted but not kept; a case that is refused with a coded error is no finding and is not judged further.
// A case that was interrupted is not counted.
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
  bool on_gpu = false;               // asks the oracle `gpu` too, for the valid cases of a block together (gpu_batch.h)
  int gpu_threads = 1;               // threads that compile for it
  uint64_t gpu_cases = 32;           // cases per batch; does not affect results
  std::function<std::unique_ptr<Device>()> gpu = {};  // empty: a CUDA device
  GpuTurns* gpu_turns = nullptr;
  std::string out = {};        // a folder for a bundle of each finding; empty: writes none
  uint32_t mutate_one_in = 2;  // cases mutated from earlier ones; 0: none
  size_t stop_after = 0;       // findings; 0: never
  Defects defects = {};
  CaseOptions cases = campaign_cases();
  int64_t step_limit = int64_t{1} << 20;  // per launch, in thread-instructions; a longer run is refused
  int field_changes = JudgeOptions().field_changes;
  // Called after each case with the statistics so far; may be empty.
  std::function<void(const Statistics&)> progress = {};
};

Statistics run_cases(const RunnerOptions& options);

// The seed of a case, for generate_case. Different numbers give different seeds, so no two cases share their choices.
uint64_t case_seed(uint64_t seed, uint64_t number);

// The parts of a case: drawing it, saving it, compiling it for the GPU together with others, and judging it (an
// oracle's row + kFirstOracle).
inline constexpr uint64_t kDrawing = 0, kSaving = 1, kGpuBatch = 2, kFirstOracle = 3;
// A draw compiles a case until it is accepted. Its n-th compilation is the part n + kFirstCompilation.
inline constexpr uint64_t kFirstCompilation = uint64_t{1} << 32;
// `generate`, `bundle`, `gpu`, or the oracle's name.
std::string stage_of_part(uint64_t part);

// A case that ended its process during a part. It is skipped; if it can be drawn, it is reported. At kGpuBatch, any
// case compiled with it may be to blame, so none is skipped but each is compiled alone.
struct DeadlyCase {
  uint64_t number = 0;
  uint64_t part = kDrawing;
  bool operator==(const DeadlyCase&) const = default;
};

struct BlockRange {
  uint64_t block = 0;
  uint64_t first = 0;          // earlier cases are counted already and only fill the pool
  uint64_t end = kBlockCases;  // both within the block
  std::vector<DeadlyCase> deadly = {};
};

struct BlockHooks {
  // Called before each part of each case. `patience`: the part may take that many times as long as others.
  std::function<void(uint64_t number, uint64_t part, uint64_t patience)> at = {};
  std::function<bool(const Statistics&)> go_on = {};  // called after each case, or after a GPU batch
  std::function<bool()> stops = {};                   // asked during a batch, which is then not counted
  std::function<void(Statistics)> told = {};          // receives counted cases now and then; the result has the rest
  std::function<void(const DeadlyCase&, const Case& c)> deadly = {};  // each deadly case of the range that can be drawn
  std::function<void(const Case&, uint64_t number, const Finding&)> found;  // every finding, even if known
  std::function<bool(const Finding&, uint64_t number)> wants_bundle = {};   // whether to make KeptFinding::saved
  // Called when the process has lost its GPU and should end. Required with `on_gpu`.
  std::function<void(uint64_t number, const Finding&)> device_lost = {};
};

// `cases` of the result: those counted since the last report.
Statistics run_block(const RunnerOptions& options, const BlockRange& range, const BlockHooks& hooks);

// Judges one case by all oracles of the options except `gpu`, and counts it in `s`.
std::vector<Finding> judge_case(const Case& c, const RunnerOptions& options, uint64_t number, Statistics& s,
                                const std::function<void(uint64_t, uint64_t)>& at = {});

// The exit code of a worker that has lost its GPU.
constexpr int kDeviceLostExit = 78;
// The signature's check for a worker's death (WorkerAnswer::death): `crash SIGSEGV`, `timeout`, `memory`.
std::string check_of_death(const std::string& death);
// The case as a bundle: the program, the schedule, the inputs and the run. The options hold the lineage and the
// signature.
Bundle finding_bundle(const Case& c, const Finding& finding, const Defects& defects);
// The bundle's bytes, or text if the finding prevents making a bundle.
FindingFile finding_file(const Case& c, const Finding& finding, const Defects& defects);
// The same without a run, for a case that ends its process.
FindingFile deadly_file(const Case& c, const Finding& finding, const Defects& defects);
// The cases as one text, each named by its number. `fuzz --case` judges such a text together on a GPU.
std::string print_batch(std::span<const GpuCase> cases);
// Writes `saved` to the folder and drops the bytes. The file's name is made from the signature and belongs to no other
// finding of `s`; `file` records it. A batch goes beside it as NAME.batch.fir.
void write_finding(const std::string& folder, KeptFinding& finding, const Statistics& s);

}  // namespace fusebox::fuzz
