// Lowering: a scheduled graph becomes a kernel program, and the host program that launches it.
//
// `lower` never fails on a graph that `legal` accepts: a plan is made (passes/plan), which refuses what is not legal,
// and emission follows it. The graph must verify and hold no symbolic domain; its level is math (every loop serial) or
// scheduled.
//
// The launch graph (level host) takes the graph's inputs, then a destination for each output that is not an alias, in
// order: it binds the sizes, checks what vectorized access relies on, allocates workspaces and launches the kernel.
//
//   y = exp x, i0 split by 128 → o on grid.x, t on block.x
//   kernel @k { … %p = lt %i, %n : bool   if %p { … } }
//   host @k.launch { … launch ceil_div(%n, 128), 1, 1, 128, 1, 1, 0 with […] name k }
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
  Bindings sizes = {};   // of one run: only a seeded defect rests on them
  bool explain = false;  // fill in Lowered::notes
};

// What `show --why` says of one condition of a statement, or of its absence.
struct CheckNote {
  CheckKind kind = CheckKind::kDomain;
  std::string value;   // the tensor that the statement makes
  std::string domain;  // its domain, or the parallel type of a thread dimension
  bool checked = false;
  CheckReason reason = CheckReason::kLoop;
  std::string
      predicate;  // the kernel's value that holds the outcome; empty where it folded to a constant or is not checked
  bool settled = false;  // by an unswitch, in front of its loop
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
// The kernel and the launch of a complete plan (plan_kernel).
Lowered emit_kernel(const KernelPlan& plan, const EmitOptions& options = {});

Lowered lower(const Graph& scheduled, const LowerOptions& options = {});

// The first reason, by code and place, why a schedule cannot be lowered; nothing if it can. Runs the stages of the plan
// that may refuse a schedule.
std::optional<Error> legal(const Graph& scheduled, const LowerOptions& options = {});

}  // namespace fusebox
