// Lowering turns a scheduled graph into a kernel program and the host program that launches it.
//
// `lower` never fails on a graph that `legal` accepts. The plan (passes/plan) refuses what is not legal; emission
// follows the plan. The graph must verify and must not hold a symbolic domain. Its level is math (every loop serial) or
// scheduled.
//
// The launch graph (level host) takes the graph's inputs, then, in order, a destination for each output that is not an
// alias. It binds the sizes, checks what vectorized access relies on, allocates workspaces and launches the kernel.
//
//   y = exp x, y.i0 split by 128 → o on grid.x, t on block.x
//   kernel @k { … %p4 = lt %i3, %s0 : bool   if %p4 { … } }
//   host @k_launch { … %i1 = floor_div %i0, 128   launch %i1, 1, 1, 128, 1, 1, 0 with […] name "k" }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"
#include "passes/nest/check_reason.h"
#include "passes/plan/kernel_plan.h"

namespace fusebox {

struct LowerOptions {
  int index_bits = 64;   // of dtype index in the kernel: 32 or 64
  Defects defects = {};  // seeded
  Bindings sizes = {};   // of one run: only a seeded defect reads them
  bool explain = false;  // fill in Lowered::notes
};

// The note of `show --why` on one condition of a statement, or on a condition that is left out.
struct CheckNote {
  CheckKind kind = CheckKind::kDomain;
  std::string value;   // the tensor that the statement makes
  std::string domain;  // its domain, or the parallel type of a thread dimension
  bool checked = false;
  CheckReason reason = CheckReason::kLoop;
  std::string predicate;  // the kernel's value of the outcome; empty if constant or not checked
  bool settled = false;   // an unswitch checks it in front of its loop
};

struct Lowered {
  Graph kernel;
  Graph launch;
  std::vector<CheckNote> notes = {};
};

struct EmitOptions {
  int index_bits = 64;   // of dtype index in the kernel: 32 or 64
  bool explain = false;  // fill in Lowered::notes
};
// Emits the kernel and the launch of a complete plan (plan_kernel).
Lowered emit_kernel(const KernelPlan& plan, const EmitOptions& options = {});

Lowered lower(const Graph& scheduled, const LowerOptions& options = {});

// The first reason why a schedule cannot be lowered, by code and place; nothing if it can. Runs the stages of the plan
// that may refuse a schedule.
std::optional<Error> legal(const Graph& scheduled, const LowerOptions& options = {});

}  // namespace fusebox
