// Cases on a GPU: the kernels of many are compiled together, several to a module and on several threads, and then each
// case is judged by the oracle `gpu`.
//
// Invariants: a verdict depends on its case alone, not on what else is in the batch; but a case that breaks the device
// ends the batch, and the process has no GPU any more.
//
//   GpuBatch batch = judge_on_gpu(cases, {.defects = defects}, 8);
//   for (const GpuVerdict& v : batch.verdicts) report(v.number, v.findings);
#pragma once

#include <vector>

#include "fuzz/oracle.h"

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
  std::vector<GpuVerdict> verdicts;  // of cases with findings
  size_t judged = 0;                 // cases
  size_t kernels = 0;                // of different text
  bool is_device_lost = false;       // by the last of the verdicts
};

// Throws kNoDevice or kModuleMissing where there is no GPU. `threads` compile.
GpuBatch judge_on_gpu(std::span<const GpuCase> cases, const JudgeOptions& options, int threads);

}  // namespace fusebox::fuzz
