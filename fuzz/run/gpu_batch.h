// Judges cases on a GPU. The kernels of many cases are compiled together, several to a module and on several threads.
// Then the oracle `gpu` judges each case.
//
// Invariants: a verdict depends on its case only, not on the rest of the batch. A case that breaks the device ends the
// batch, and the process loses its GPU.
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
  Case subject;  // compiles, and ran on the host executor
};

struct GpuVerdict {
  uint64_t number = 0;
  std::vector<Finding> findings;
};

struct GpuBatch {
  std::vector<GpuVerdict> verdicts;             // only of cases with findings
  size_t judged = 0;                            // cases
  size_t kernels = 0;                           // different texts only
  bool is_device_lost = false;                  // the case of the last verdict broke it
  bool is_complete = false;                     // false: it was stopped, or the device was lost
  double compile_s = 0, wait_s = 0, run_s = 0;  // compiling and host runs; waiting for a turn; runs on the GPU
};

// Lets only a few processes use the GPU at a time. If many run together, they take turns of some milliseconds there,
// and every small copy waits for a turn. Create it before the processes start; they share it. A turn ends with its
// process.
class GpuTurns {
 public:
  explicit GpuTurns(int at_once);
  GpuTurns(const GpuTurns&) = delete;
  GpuTurns& operator=(const GpuTurns&) = delete;
  ~GpuTurns();

  // Takes a turn if one is free; false if all are taken.
  bool take();
  void give_back();

 private:
  int file_ = -1, at_once_, taken_ = -1;
};

struct GpuBatchOptions {
  int threads = 1;                                              // compiling threads
  std::function<std::unique_ptr<Device>()> device = {};         // empty: a CUDA device
  GpuTurns* turns = nullptr;                                    // nullptr: no turns
  std::function<bool()> stops = {};                             // asked between kernels and between cases
  std::function<void(bool compiles, uint64_t number)> at = {};  // called before a compilation and before a case runs
};

// Compiles the case and stores the result in it.
void compile_case(Case& c, const Defects& defects);

// Throws kNoDevice or kModuleMissing if there is no GPU.
std::vector<Finding> judge_on_gpu(Case c, const JudgeOptions& options, const GpuBatchOptions& how);
GpuBatch judge_on_gpu(std::span<const GpuCase> cases, const JudgeOptions& options, const GpuBatchOptions& how);

}  // namespace fusebox::fuzz
