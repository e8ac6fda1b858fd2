// `StepDraft` builds a list of schedule steps, a call for each kind of step. Names are those of tensors and of domains.
//
//   StepDraft s;
//   s.split("y", "i1", 8, "c", "v");
//   s.parallelize("y", "v", ParallelType::kVectorize);
//   s.take()   // split %y.i1 by 8 -> c, v; parallelize %y.v on vectorize
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module/step.h"

namespace fusebox {

class StepDraft {
 public:
  using Name = std::string_view;
  using Names = std::vector<std::string>;

  // `inner` has the factor as its extent.
  void split(Name tensor, Name domain, int64_t factor, Name outer, Name inner);
  // `outer` has the factor as its extent.
  void split_outer(Name tensor, Name domain, int64_t factor, Name outer, Name inner);
  void merge(Name tensor, Name outer, Name inner, Name merged);
  // `first` and `second` are the domains; their results follow in the same order.
  void swizzle(Name tensor, Name first, Name second, Name first_result, Name second_result);
  void reorder(Name tensor, const Names& domains);
  void parallelize(Name tensor, Name domain, ParallelType type);
  void set_memory_type(Name tensor, MemoryType memory);
  void set_loop_domain(Name tensor, Name like);
  // An empty list stands for all tensors, here and in `inline_most`.
  void transform_like(Name tensor, const Names& others = {});
  void parallelize_like(Name tensor, const Names& others = {});
  void cache_after(Name tensor, Name copy);
  void cache_before(Name tensor, Name copy);
  void cache_fork(Name tensor, Name copy);
  void recompute(Name tensor, Name user, Name copy);
  void rfactor(Name tensor, const Names& domains, const Names& parts);
  void circular_buffer(Name tensor, int64_t depth);
  void inline_at(Name tensor, Name domain);
  void inline_most(const Names& tensors = {});
  void assume_multiple(Name size, int64_t divisor);
  void assume_at_most(const Names& sizes, int64_t bound);
  void assume_above(Name size, int64_t bound);
  void assume_equal(Name size, int64_t value);
  void bound_launch(int64_t threads, int64_t blocks);
  void dependent_launch();
  void cluster(int64_t blocks, ParallelType axis);

  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step> take() { return std::move(steps_); }
  void drop_last() { steps_.pop_back(); }

 private:
  Step& add(StepKind kind, std::vector<StepOperand> operands, Names results = {});

  std::vector<Step> steps_;
};

}  // namespace fusebox
