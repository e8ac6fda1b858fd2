#include "ir/module/step.h"

#include <algorithm>

#include "ir/step/apply.h"
#include "ir/step/step_applier.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

bool is_schedule(StepKind kind) {
  switch (kind) {
    case StepKind::kSetMesh:
    case StepKind::kRewrite:
    case StepKind::kConcretize:
    case StepKind::kConcretizeReshape:
    case StepKind::kAssign:
    case StepKind::kPrecision:
      return false;
    case StepKind::kSplit:
    case StepKind::kMerge:
    case StepKind::kReorder:
    case StepKind::kSwizzle:
    case StepKind::kResize:
    case StepKind::kParallelize:
    case StepKind::kRfactor:
    case StepKind::kCacheBefore:
    case StepKind::kCacheAfter:
    case StepKind::kCacheFork:
    case StepKind::kRecompute:
    case StepKind::kSetMemoryType:
    case StepKind::kSetAllocation:
    case StepKind::kSetLoopDomain:
    case StepKind::kInlineAt:
    case StepKind::kInlineMost:
    case StepKind::kTransformLike:
    case StepKind::kParallelizeLike:
    case StepKind::kPropagate:
    case StepKind::kCircularBuffer:
    case StepKind::kLoopBroadcast:
    case StepKind::kAssume:
    case StepKind::kBoundLaunch:
    case StepKind::kCluster:
    case StepKind::kDependentLaunch:
      return true;
  }
  return true;
}

void check_concrete(const StepContext& c) {
  if (c.g.level != Level::kMath || !is_schedule(c.step.kind)) return;
  for (OpId op : c.g.regions[0].ops)
    for (ValueId v : c.g[op].results) {
      if (!c.g.is_tensor(v)) continue;
      for (DomainId d : c.g.tensor_of(v).logical)
        if (c.g[d].iter_type == IterType::kSymbolic)
          c.refuse("this axis is symbolic; concretize the program before scheduling it", c.place(d));
    }
}

void run(StepContext& c) {
  check_step_form(c);
  check_concrete(c);
  switch (c.step.kind) {
    case StepKind::kSplit:
      return step_split(c);
    case StepKind::kMerge:
      return step_merge(c);
    case StepKind::kReorder:
      return step_reorder(c);
    case StepKind::kSwizzle:
      return step_swizzle(c);
    case StepKind::kResize:
      return step_resize(c);
    case StepKind::kParallelize:
      return step_parallelize(c);
    case StepKind::kRfactor:
      return step_rfactor(c);
    case StepKind::kCacheBefore:
      return step_cache_before(c);
    case StepKind::kCacheAfter:
      return step_cache_after(c);
    case StepKind::kCacheFork:
      return step_cache_fork(c);
    case StepKind::kRecompute:
      return step_recompute(c);
    case StepKind::kSetMemoryType:
      return step_set_memory_type(c);
    case StepKind::kSetAllocation:
      return step_set_allocation(c);
    case StepKind::kSetLoopDomain:
      return step_set_loop_domain(c);
    case StepKind::kSetMesh:
      return step_set_mesh(c);
    case StepKind::kInlineAt:
      return step_inline_at(c);
    case StepKind::kInlineMost:
      return step_inline_most(c);
    case StepKind::kTransformLike:
      return step_transform_like(c);
    case StepKind::kParallelizeLike:
      return step_parallelize_like(c);
    case StepKind::kPropagate:
      return step_propagate(c);
    case StepKind::kCircularBuffer:
      return step_circular_buffer(c);
    case StepKind::kRewrite:
      return c.refuse("a rewrite runs a pass, and steps alone know none; run the pass, or leave the step out");
    case StepKind::kConcretize:
      return step_concretize(c);
    case StepKind::kConcretizeReshape:
      return step_concretize_reshape(c);
    case StepKind::kAssign:
      return c.refuse("assign puts ops into a segment; it applies to a segmentation, not to a graph");
    case StepKind::kLoopBroadcast:
      return step_loop_broadcast(c);
    case StepKind::kPrecision:
      return step_precision(c);
    case StepKind::kAssume:
      return step_assume(c);
    case StepKind::kBoundLaunch:
      return step_bound_launch(c);
    case StepKind::kCluster:
      return step_cluster(c);
    case StepKind::kDependentLaunch:
      return step_dependent_launch(c);
  }
}

// Whether a step of this kind may empty transforms, because it drops the transforms of a tensor or moves them to
// another.
bool may_empty_transforms(StepKind kind) {
  switch (kind) {
    case StepKind::kRfactor:
    case StepKind::kCacheBefore:
    case StepKind::kCacheAfter:
    case StepKind::kCacheFork:
    case StepKind::kRecompute:
    case StepKind::kSetAllocation:
    case StepKind::kSetLoopDomain:
    case StepKind::kTransformLike:
    case StepKind::kPropagate:
    case StepKind::kConcretize:
    case StepKind::kConcretizeReshape:
    case StepKind::kRewrite:
      return true;
    case StepKind::kSplit:
    case StepKind::kMerge:
    case StepKind::kReorder:
    case StepKind::kSwizzle:
    case StepKind::kResize:
    case StepKind::kParallelize:
    case StepKind::kSetMemoryType:
    case StepKind::kSetMesh:
    case StepKind::kInlineAt:
    case StepKind::kInlineMost:
    case StepKind::kParallelizeLike:
    case StepKind::kCircularBuffer:
    case StepKind::kAssign:
    case StepKind::kLoopBroadcast:
    case StepKind::kPrecision:
    case StepKind::kAssume:
    case StepKind::kBoundLaunch:
    case StepKind::kCluster:
    case StepKind::kDependentLaunch:
      return false;
  }
  throw Error(ErrorCode::kInternal, "no step has this number");
}

// Removes the transforms that a step emptied (prune, domain_edit.h), so that each transform belongs to a tensor. Ids of
// transforms may change at a step. Ids of domains may not, so emptied domains stay.
void drop_empty_transforms(Graph& g) {
  if (std::none_of(g.transforms.begin(), g.transforms.end(), [](const Transform& t) { return t.inputs.empty(); }))
    return;
  std::vector<TransformId> moved(g.transforms.size());
  std::vector<Transform> kept;
  for (size_t i = 0; i < g.transforms.size(); ++i) {
    if (g.transforms[i].inputs.empty()) continue;
    moved[i] = TransformId(kept.size());
    kept.push_back(std::move(g.transforms[i]));
  }
  g.transforms = std::move(kept);
  for (IterDomain& d : g.domains)
    if (d.def) d.def = moved[d.def.index];
  for (Tensor& t : g.tensors) {
    for (TransformId& id : t.transforms) id = moved[id.index];
    std::erase(t.transforms, TransformId());
  }
}

}  // namespace

std::optional<StepRefusal> inapplicable(const Graph& g, const Step& step) {
  try {
    NameIndex names(g);
    StepContext c{g, step, names};
    run(c);
    return std::nullopt;
  } catch (const Error& e) {
    return StepRefusal{e.code, e.what(), e.place};
  }
}

void StepApplier::apply(const Step& step) {
  StepContext c{g_, step, names_, &g_, defects_};
  run(c);
  if (may_empty_transforms(step.kind)) drop_empty_transforms(g_);
}

void apply(Graph& g, const Step& step, const Defects& defects) { StepApplier(g, defects).apply(step); }

void apply(Graph& g, std::span<const Step> steps, const Defects& defects) {
  StepApplier applier(g, defects);
  for (const Step& step : steps) applier.apply(step);
}

}  // namespace fusebox
