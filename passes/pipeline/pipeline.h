// The normal way from a fusion to programs that run, as one pure function: rewrite, concretize for the inputs' shapes,
// segment, schedule, lower, and build the host program. Every intermediate state is kept, for bundles and replays.
//
//   Compiled c = compile(fusion, bindings, {.steps = steps});
//   c.kernels[0]   // of c.segmentation.segments[0];   c.host: the host program, level host
#pragma once

#include <optional>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/infer/bind.h"
#include "ir/module/module.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

struct Compiled;

struct CompileOptions {
  // Rewrites first, then the schedule of the whole fusion as one kernel, or with `assign` steps, as several. None, or
  // rewrites alone: plan_unfused.
  std::optional<std::vector<Step>> steps = {};
  // A segmentation made before (a replay): used as it is instead of planning.
  std::optional<Segmentation> segmentation = {};
  // 32, 64, or 0: the smaller one that the bindings allow.
  int index_bits = 0;
  // Strides of the fusion's inputs, in their order, for the choice of the index width; empty: those of contiguous
  // tensors, and 64 bits where a kernel asks for a stride.
  std::vector<BoundInput> inputs = {};
  Defects defects = {};       // seeded
  bool digest_plans = false;  // fill in Compiled::plans
  // Another program's, made without defects: what is the same there is not scheduled again, nor lowered.
  const Compiled* known = nullptr;
};

struct Compiled {
  std::vector<Step> concretize;  // steps that resolved symbolic axes
  Graph concretized;             // after rewrites and these steps, in the canonical order
  Segmentation segmentation;
  std::vector<Graph> scheduled;  // by segment; of an ATen segment: the segment as a fusion
  std::vector<Graph> kernels;    // by segment; empty graphs for ATen segments
  std::vector<Graph> launches;   // by segment: what the host computes to launch the kernel
  std::vector<Digest> plans;     // by segment with a kernel, where they are asked for
  Graph host;
  int index_bits = 64;
};

// `bindings`: of the fusion's values (bind_sizes). Throws the first Error of any stage.
Compiled compile(const Graph& fusion, const Bindings& bindings, const CompileOptions& options = {});

// How far a program was compiled. With an error, `made` holds what came before it; its last scheduled graph has the
// steps that applied.
struct CompileAttempt {
  Compiled made;
  size_t segment = 0;         // the one that was scheduled or lowered last
  size_t steps = 0;           // how many steps of the last scheduled graph were applied
  bool is_scheduled = false;  // all segments are
  std::optional<Error> error = {};
};
// Throws nothing that `compile` throws; for showing a schedule that is refused.
CompileAttempt try_compile(const Graph& fusion, const Bindings& bindings, const CompileOptions& options = {});

struct LowerSegmentsOptions {
  Defects defects = {};             // seeded
  Bindings sizes = {};              // of c.concretized in one run: only a seeded defect rests on them
  const Compiled* known = nullptr;  // as in CompileOptions
  bool digest_plans = false;        // as in CompileOptions
};
// Fills in the kernels of the scheduled segments and what launches them; empty graphs for ATen segments.
void lower_segments(Compiled& c, const LowerSegmentsOptions& options);

// 64 where a tensor has so many elements, or a scalar is so large, that 32 bits are out of the question; else 32, which
// `compile` then proves of each kernel (index_range.h), or takes 64 after all.
int choose_index_bits(const Graph& concretized, const Bindings& bindings);

}  // namespace fusebox
