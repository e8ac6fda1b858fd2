// Emits the host program of one kernel: sizes, checks, workspaces, launch dimensions, arguments. It reads the plan, and
// the list of the kernel's parameters, which is a value too. This header is internal to passes/lower.
//
// Invariants: `parameters` are those of the kernel that was emitted from `plan`, in their order. Nothing is refused.
//
//   kernel parameters T0, T1, s0, grid_counters   →   launch …, %x, %y, %n, %counters
#pragma once

#include <cstdint>
#include <vector>

#include "passes/plan/kernel_plan.h"

namespace fusebox {

// What the launch must pass for one parameter of a kernel.
struct KernelParameter {
  enum class Kind : uint8_t {
    kTensor,     // `tensor`: an input, an output or an intermediate in global memory
    kScalar,     // `scalar`
    kWorkspace,  // of a grid reduction: an element of `dtype` for each thread
    kCounters,   // of grid barriers and grid reductions: `slots` counters that are 0
  };
  Kind kind = Kind::kTensor;
  ValueId tensor = {};
  ScalarParameter scalar = {};
  Dtype dtype = Dtype::kFloat;
  int64_t slots = 0;
};

Graph emit_launch(const KernelPlan& plan, const std::vector<KernelParameter>& parameters);

}  // namespace fusebox
