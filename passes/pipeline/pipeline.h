// The pipeline takes a fusion to programs that run. It is one pure function: rewrite, concretize for the inputs'
// shapes, segment, schedule, lower, and build the host program. It keeps every intermediate state, for bundles and
// replays.
//
// Invariants: the lists of Compiled that go by segment have one entry for each segment, in the order of the
// segmentation. A program depends only on the fusion, the bindings and the options.
//
//   Compiled c = compile(fusion, bindings, {.steps = steps});
//   c.kernels[0]   // of c.segmentation.segments[0];   c.host: the host program, level host
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/infer/bind.h"
#include "ir/module/module.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"
#include "passes/automatic/plan_automatic.h"
#include "passes/segment/crossing_layouts.h"

namespace fusebox {

struct Compiled;

struct CompileOptions {
  // Rewrites first, then a schedule. It schedules the whole fusion as one kernel or, with `assign` steps, as several.
  // Without steps, or with rewrites alone, the program is the automatic plan for `device`, or plan_unfused. A fusion of
  // level scheduled has its schedule; without steps it is one kernel.
  std::optional<std::vector<Step>> steps = {};
  // The GPU for which the automatic plan is made; none: the program is plan_unfused if no schedule is given.
  std::optional<DeviceProperties> device = {};
  // A segmentation that was made before (a replay). It is used as it is.
  std::optional<Segmentation> segmentation = {};
  // 32, 64, or 0: the smaller width that the bindings allow.
  int index_bits = 0;
  // The fusion's inputs, in their order, for choosing the index width and for the automatic plan. Empty: contiguous and
  // aligned tensors, and 64 bits if a kernel asks for a stride.
  std::vector<BoundInput> inputs = {};
  // By segment of the automatic plan: heuristics in place of its scheduler's own choice (AutomaticOptions).
  std::map<std::string, Replacement> heuristics = {};
  bool others = false;        // fill in Decision::others
  Defects defects = {};       // seeded
  bool digest_plans = false;  // fill in Compiled::plans
  // How ATen segments lay out what they make (segment/crossing_layouts.h). Null: it is made contiguous.
  InferLayouts infer = nullptr;
  // A program that was compiled before, without defects. Segments that are the same there are neither scheduled nor
  // lowered again.
  const Compiled* known = nullptr;
};

// The decisions of the automatic plan, and the classes of sizes and of memory that they hold for.
struct Automatic {
  std::vector<Step> steps;  // rewrites and a schedule: with them in CompileOptions::steps the same program is made
  std::vector<Decision> decisions;
  SizeClasses sizes;  // of Compiled::concretized
  MemoryClasses memory;
};

struct Compiled {
  std::optional<Automatic> automatic;
  std::vector<Step> concretize;  // steps that resolved symbolic axes
  Graph concretized;             // after rewrites and these steps, in the canonical order
  Segmentation segmentation;
  std::vector<Graph> scheduled;  // by segment; for an ATen segment: the segment as a fusion
  std::vector<Graph> kernels;    // by segment; empty graphs for ATen segments
  std::vector<Graph> launches;   // by segment: the host ops that launch the kernel
  std::vector<Digest> plans;     // by segment with a kernel, if they are asked for
  Graph host;
  int index_bits = 64;
  Defects defects = {};  // seeded: those that it was compiled with
};

// Whether the schedulers decide: a GPU is named, and neither the fusion nor the steps hold a schedule.
bool is_automatic(const Graph& fusion, const CompileOptions& options);

// `bindings` belong to the fusion's values (bind_sizes). Throws the first Error of any stage.
Compiled compile(const Graph& fusion, const Bindings& bindings, const CompileOptions& options = {});

// The steps that `compile` resolves symbolic axes with. Together with `serves` they are all that a program takes from the
// bindings. Throws as `compile` does.
std::vector<Step> plan_concretization(const Graph& fusion, const Bindings& bindings, const CompileOptions& options);

// Whether `compile` would make the same programs of the same fusion and options for these bindings. Sizes decide three
// things only: what symbolic axes become, the automatic plan, and the index width. Throws as `compile` does if the sizes do not fit.
bool serves(const Compiled& compiled, const Graph& fusion, const Bindings& bindings, const CompileOptions& options);

// A compilation as far as it came. With an error, `made` holds everything before the error. The last scheduled graph in
// it has the steps that applied.
struct CompileAttempt {
  Compiled made;
  size_t segment = 0;         // the segment that was scheduled or lowered last
  size_t steps = 0;           // number of steps applied to the last scheduled graph
  bool is_scheduled = false;  // whether all segments are scheduled
  std::optional<Error> error = {};
};
// Returns the Error that `compile` would throw. Used to show a schedule that is refused.
CompileAttempt try_compile(const Graph& fusion, const Bindings& bindings, const CompileOptions& options = {});

struct LowerSegmentsOptions {
  Defects defects = {};             // seeded
  Bindings sizes = {};              // of c.concretized in one run: only seeded defects read them
  const Compiled* known = nullptr;  // as in CompileOptions
  bool digest_plans = false;        // as in CompileOptions
};
// Fills in the kernels and launches of the scheduled segments; an ATen segment gets empty graphs.
void lower_segments(Compiled& c, const LowerSegmentsOptions& options);

// The index width to begin with. It is 64 if a tensor has so many elements, or a scalar is so large, that 32 bits are
// out of the question. Otherwise it is 32. `compile` then proves 32 bits enough for each kernel (index_range.h), or
// takes 64 after all.
int choose_index_bits(const Graph& concretized, const Bindings& bindings);

}  // namespace fusebox
