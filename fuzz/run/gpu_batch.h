// Cases on a GPU: the kernels of many are compiled together, several to a module and on several threads, and then each
// case is judged by the oracle `gpu`.
//
// Invariants: a verdict depends on its case alone, not on what else is in the batch; but a case that breaks the device
// ends the batch, and the process has no GPU any more.
//
//   GpuBatch batch = judge_on_gpu(cases, {.defects = defects}, {.threads = 8});
//   for (const GpuVerdict& v : batch.verdicts) report(v.number, v.findings);
#pragma once

#include <functional>
#include <vector>

#include "fuzz/oracle/oracle.h"

namespace fusebox::fuzz {

struct GpuCase {
  uint64_t number = 0;
  Case subject;  // one that compiles, and that ran on the host executor
};

struct GpuVerdict {
  uint64_t number = 0;
  std::vector<Finding> findings;
};

struct GpuBatch {
  std::vector<GpuVerdict> verdicts;             // of cases with findings
  size_t judged = 0;                            // cases
  size_t kernels = 0;                           // of different text
  bool is_device_lost = false;                  // by the last of the verdicts
  bool is_complete = false;                     // else it was stopped, or the device was lost
  double compile_s = 0, wait_s = 0, run_s = 0;  // compilation with the host's runs, waiting for a turn, the GPU's runs
};

// Few processes at a time may use the GPU: what several run beside each other takes turns of some milliseconds there,
// and every copy of a few bytes waits for its turn. Made before the processes are, and shared by them; a turn ends with
// its process.
class GpuTurns {
 public:
  explicit GpuTurns(int at_once);
  GpuTurns(const GpuTurns&) = delete;
  GpuTurns& operator=(const GpuTurns&) = delete;
  ~GpuTurns();

  // Whether this process has one of them now.
  bool take();
  void give_back();

 private:
  int file_ = -1, at_once_, taken_ = -1;
};

struct GpuBatchOptions {
  int threads = 1;                                              // that compile
  std::function<std::unique_ptr<Device>()> device = {};         // empty: a CUDA device
  GpuTurns* turns = nullptr;                                    // none: no turns
  std::function<bool()> stops = {};                             // asked between kernels and between cases
  std::function<void(bool compiles, uint64_t number)> at = {};  // before a compilation, and before a case that runs
};

// What the case compiles to, into the case.
void compile_case(Case& c, const Defects& defects);

// Throws kNoDevice or kModuleMissing where there is no GPU.
std::vector<Finding> judge_on_gpu(Case c, const JudgeOptions& options, const GpuBatchOptions& how);
GpuBatch judge_on_gpu(std::span<const GpuCase> cases, const JudgeOptions& options, const GpuBatchOptions& how);

}  // namespace fusebox::fuzz
