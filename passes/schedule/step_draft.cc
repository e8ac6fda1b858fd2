#include "passes/schedule/step_draft.h"

#include <utility>

namespace fusebox {

namespace {

using Name = StepDraft::Name;
using Names = StepDraft::Names;

StepOperand domain(Name tensor, Name name) { return StepOperand::domain_of(tensor, name); }

std::vector<StepOperand> values(const Names& names) {
  std::vector<StepOperand> result;
  for (const std::string& name : names) result.push_back(StepOperand::of(name));
  return result;
}

std::vector<StepOperand> values(Name first, const Names& others) {
  std::vector<StepOperand> result = values(others);
  result.insert(result.begin(), StepOperand::of(first));
  return result;
}

}  // namespace

Step& StepDraft::add(StepKind kind, std::vector<StepOperand> operands, Names results) {
  return steps_.emplace_back(Step{kind, std::move(operands), std::move(results), {}});
}

void StepDraft::split(Name tensor, Name d, int64_t factor, Name outer, Name inner) {
  add(StepKind::kSplit, {domain(tensor, d), StepOperand::number(factor)}, {std::string(outer), std::string(inner)});
}

void StepDraft::split_outer(Name tensor, Name d, int64_t factor, Name outer, Name inner) {
  split(tensor, d, factor, outer, inner);
  steps_.back().attrs.set_flag(AttrKey::kOuter);
}

void StepDraft::merge(Name tensor, Name outer, Name inner, Name merged) {
  add(StepKind::kMerge, {domain(tensor, outer), domain(tensor, inner)}, {std::string(merged)});
}

void StepDraft::swizzle(Name tensor, Name first, Name second, Name first_result, Name second_result) {
  add(StepKind::kSwizzle, {domain(tensor, first), domain(tensor, second)},
      {std::string(first_result), std::string(second_result)});
}

void StepDraft::reorder(Name tensor, const Names& domains) {
  std::vector<StepOperand> operands{StepOperand::of(tensor)};
  for (const std::string& d : domains) operands.push_back(domain(tensor, d));
  add(StepKind::kReorder, std::move(operands));
}

void StepDraft::parallelize(Name tensor, Name d, ParallelType type) {
  add(StepKind::kParallelize, {domain(tensor, d)}).attrs.set_enum(AttrKey::kParallel, type);
}

void StepDraft::set_memory_type(Name tensor, MemoryType memory) {
  add(StepKind::kSetMemoryType, {StepOperand::of(tensor)}).attrs.set_enum(AttrKey::kMemory, memory);
}

void StepDraft::set_loop_domain(Name tensor, Name like) {
  add(StepKind::kSetLoopDomain, {StepOperand::of(tensor), StepOperand::of(like)});
}

void StepDraft::transform_like(Name tensor, const Names& others) {
  add(StepKind::kTransformLike, values(tensor, others));
}

void StepDraft::parallelize_like(Name tensor, const Names& others) {
  add(StepKind::kParallelizeLike, values(tensor, others));
}

void StepDraft::cache_after(Name tensor, Name copy) {
  add(StepKind::kCacheAfter, {StepOperand::of(tensor)}, {std::string(copy)});
}

void StepDraft::cache_before(Name tensor, Name copy) {
  add(StepKind::kCacheBefore, {StepOperand::of(tensor)}, {std::string(copy)});
}

void StepDraft::cache_fork(Name tensor, Name copy) {
  add(StepKind::kCacheFork, {StepOperand::of(tensor)}, {std::string(copy)});
}

void StepDraft::recompute(Name tensor, Name user, Name copy) {
  add(StepKind::kRecompute, {StepOperand::of(tensor), StepOperand::of(user)}, {std::string(copy)});
}

void StepDraft::rfactor(Name tensor, const Names& domains, const Names& parts) {
  std::vector<StepOperand> operands{StepOperand::of(tensor)};
  for (const std::string& d : domains) operands.push_back(domain(tensor, d));
  add(StepKind::kRfactor, std::move(operands), parts);
}

void StepDraft::circular_buffer(Name tensor, int64_t depth) {
  add(StepKind::kCircularBuffer, {StepOperand::of(tensor)}).attrs.set(AttrKey::kDepth, depth);
}

void StepDraft::inline_at(Name tensor, Name d) { add(StepKind::kInlineAt, {domain(tensor, d)}); }

void StepDraft::inline_most(const Names& tensors) { add(StepKind::kInlineMost, values(tensors)); }

// In the steps `assume`, the facts that are not stated are absent operands.
void StepDraft::assume_multiple(Name size, int64_t divisor) {
  add(StepKind::kAssume, {StepOperand::of(size), StepOperand::number(divisor), {}, {}, {}});
}

void StepDraft::assume_at_most(const Names& sizes, int64_t bound) {
  std::vector<StepOperand> operands = values(sizes);
  operands.insert(operands.end(), {{}, StepOperand::number(bound), {}, {}});
  add(StepKind::kAssume, std::move(operands));
}

void StepDraft::assume_above(Name size, int64_t bound) {
  add(StepKind::kAssume, {StepOperand::number(bound), {}, {}, StepOperand::of(size), {}});
}

void StepDraft::assume_equal(Name size, int64_t value) {
  add(StepKind::kAssume, {StepOperand::of(size), {}, {}, {}, StepOperand::number(value)});
}

void StepDraft::bound_launch(int64_t threads, int64_t blocks) {
  add(StepKind::kBoundLaunch, {StepOperand::number(threads), StepOperand::number(blocks)});
}

void StepDraft::dependent_launch() { add(StepKind::kDependentLaunch, {}); }

void StepDraft::cluster(int64_t blocks, ParallelType axis) {
  add(StepKind::kCluster, {StepOperand::number(blocks)}).attrs.set_enum(AttrKey::kParallel, axis);
}

}  // namespace fusebox
