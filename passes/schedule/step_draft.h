// `StepDraft` builds a list of schedule steps, a call for each kind of step. Names are those of tensors and of domains.
//
//   StepDraft s;
//   s.split("y", "i1", 8, "c", "v");
//   s.parallelize("y", "v", ParallelType::kVectorize);
//   s.take()   // split %y.i1 by 8 -> c, v; parallelize %y.v on vectorize
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/module/step.h"

namespace fusebox {

class StepDraft {
 public:
  using Names = std::vector<std::string>;

  // `inner` has the factor as its extent.
  void split(const std::string& tensor, const std::string& domain, int64_t factor, const std::string& outer,
             const std::string& inner);
  // `outer` has the factor as its extent.
  void split_outer(const std::string& tensor, const std::string& domain, int64_t factor, const std::string& outer,
                   const std::string& inner);
  void merge(const std::string& tensor, const std::string& outer, const std::string& inner, const std::string& merged);
  void reorder(const std::string& tensor, const Names& domains);
  void parallelize(const std::string& tensor, const std::string& domain, ParallelType type);
  void transform_like(const std::string& tensor, const Names& others = {});
  void parallelize_like(const std::string& tensor, const Names& others = {});
  void cache_after(const std::string& tensor, const std::string& copy);
  void cache_before(const std::string& tensor, const std::string& copy);
  void cache_fork(const std::string& tensor, const std::string& copy);
  void recompute(const std::string& tensor, const std::string& user, const std::string& copy);
  void inline_at(const std::string& tensor, const std::string& domain);
  void inline_most(const Names& tensors);
  void assume_at_most(const Names& sizes, int64_t bound);
  void bound_launch(int64_t threads, int64_t blocks);

  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step> take() { return std::move(steps_); }

 private:
  Step& add(StepKind kind, std::vector<StepOperand> operands, Names results = {});

  std::vector<Step> steps_;
};

}  // namespace fusebox
