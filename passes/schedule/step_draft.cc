#include "passes/schedule/step_draft.h"

#include <utility>

namespace fusebox {

namespace {

StepOperand domain(const std::string& tensor, const std::string& name) { return StepOperand::domain_of(tensor, name); }

std::vector<StepOperand> tensors(const std::string& first, const StepDraft::Names& others) {
  std::vector<StepOperand> result{StepOperand::of(first)};
  for (const std::string& name : others) result.push_back(StepOperand::of(name));
  return result;
}

}  // namespace

Step& StepDraft::add(StepKind kind, std::vector<StepOperand> operands, Names results) {
  return steps_.emplace_back(Step{kind, std::move(operands), std::move(results), {}});
}

void StepDraft::split(const std::string& tensor, const std::string& d, int64_t factor, const std::string& outer,
                      const std::string& inner) {
  add(StepKind::kSplit, {domain(tensor, d), StepOperand::number(factor)}, {outer, inner});
}

void StepDraft::split_outer(const std::string& tensor, const std::string& d, int64_t factor, const std::string& outer,
                            const std::string& inner) {
  add(StepKind::kSplit, {domain(tensor, d), StepOperand::number(factor)}, {outer, inner})
      .attrs.set_flag(AttrKey::kOuter);
}

void StepDraft::merge(const std::string& tensor, const std::string& outer, const std::string& inner,
                      const std::string& merged) {
  add(StepKind::kMerge, {domain(tensor, outer), domain(tensor, inner)}, {merged});
}

void StepDraft::reorder(const std::string& tensor, const Names& domains) {
  std::vector<StepOperand> operands{StepOperand::of(tensor)};
  for (const std::string& d : domains) operands.push_back(domain(tensor, d));
  add(StepKind::kReorder, std::move(operands));
}

void StepDraft::parallelize(const std::string& tensor, const std::string& d, ParallelType type) {
  add(StepKind::kParallelize, {domain(tensor, d)}).attrs.set_enum(AttrKey::kParallel, type);
}

void StepDraft::transform_like(const std::string& tensor, const Names& others) {
  add(StepKind::kTransformLike, tensors(tensor, others));
}

void StepDraft::parallelize_like(const std::string& tensor, const Names& others) {
  add(StepKind::kParallelizeLike, tensors(tensor, others));
}

void StepDraft::cache_after(const std::string& tensor, const std::string& copy) {
  add(StepKind::kCacheAfter, {StepOperand::of(tensor)}, {copy});
}

void StepDraft::cache_before(const std::string& tensor, const std::string& copy) {
  add(StepKind::kCacheBefore, {StepOperand::of(tensor)}, {copy});
}

void StepDraft::cache_fork(const std::string& tensor, const std::string& copy) {
  add(StepKind::kCacheFork, {StepOperand::of(tensor)}, {copy});
}

void StepDraft::recompute(const std::string& tensor, const std::string& user, const std::string& copy) {
  add(StepKind::kRecompute, {StepOperand::of(tensor), StepOperand::of(user)}, {copy});
}

void StepDraft::inline_at(const std::string& tensor, const std::string& d) {
  add(StepKind::kInlineAt, {domain(tensor, d)});
}

void StepDraft::inline_most(const Names& names) {
  std::vector<StepOperand> operands;
  for (const std::string& name : names) operands.push_back(StepOperand::of(name));
  add(StepKind::kInlineMost, std::move(operands));
}

void StepDraft::assume_at_most(const Names& sizes, int64_t bound) {
  std::vector<StepOperand> operands;
  for (const std::string& name : sizes) operands.push_back(StepOperand::of(name));
  // The other facts are absent.
  operands.push_back({});
  operands.push_back(StepOperand::number(bound));
  operands.push_back({});
  operands.push_back({});
  add(StepKind::kAssume, std::move(operands));
}

void StepDraft::bound_launch(int64_t threads, int64_t blocks) {
  add(StepKind::kBoundLaunch, {StepOperand::number(threads), StepOperand::number(blocks)});
}

}  // namespace fusebox
