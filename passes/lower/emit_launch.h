// Emits the host program of one kernel: sizes, checks, workspaces, launch dimensions, arguments. It reads the plan and
// the kernel's signature, which is a value too. This header is internal to passes/lower.
//
// Invariants: the signature is that of the kernel that was emitted from `plan`. Nothing is refused.
//
//   kernel parameters T0, T1, s0, grid_counters   →   launch …, %x, %y, %n, %counters
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "passes/kernel/kernel_builder.h"
#include "passes/plan/kernel_plan.h"

namespace fusebox {

// The argument that the launch must pass for one parameter of a kernel.
struct KernelParameter {
  enum class Kind : uint8_t {
    kTensor,     // `tensor`: an input, an output or an intermediate in global memory
    kScalar,     // `scalar`
    kLaunched,   // the launch computes it: `spelled`, or if `is_prepared` what prepare_div makes of that
    kWorkspace,  // of a grid reduction: for each block, and with `has_results` for each group of blocks, `elements` of
                 // `dtype` for each thread that differs in another dimension than those of `threads`
    kArrivals,   // of grid reductions: `slots` counters for each block, which are 0
    kCounters,   // of grid barriers: `slots` counters, which are 0
  };
  Kind kind = Kind::kTensor;
  ValueId tensor = {};
  ScalarParameter scalar = {};
  Dtype dtype = Dtype::kFloat;
  int64_t elements = 1;
  std::vector<ParallelType> threads = {};
  bool has_results = false;
  int64_t slots = 0;
  ValueId spelled = {};  // in KernelSignature::spelled
  bool is_prepared = false;
};

struct KernelSignature {
  std::vector<KernelParameter> parameters;  // in the kernel's order
  // The scalars of kLaunched parameters as ops on symbols. Equal forms of two algebras are one value here.
  KernelBuilder spelled{"", 64};
  std::map<int, ValueId> symbols;
};

// The bound on the threads of a block that the kernel is compiled for.
struct LaunchBound {
  int64_t most_threads;
  int64_t least_blocks;
  bool is_stated;  // by the schedule: the launch checks it; else every block has exactly so many threads
};
// Nothing if the schedule states none and the threads are not known.
std::optional<LaunchBound> launch_bound(const KernelPlan& plan);

Graph emit_launch(const KernelPlan& plan, const KernelSignature& signature);

}  // namespace fusebox
