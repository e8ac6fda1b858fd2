// `StepWriter` writes a schedule. It keeps each step, and applies it to a copy of the fusion, so that the next step can be
// chosen by what is there.
//
// Invariants: `steps()` applied to the fusion give `graph()`. If a step is refused, it is the last of them, and applying
// them is refused likewise. Wanted names that are taken get a number.
//
//   StepWriter w(fusion);
//   auto [o, t] = w.split("y", "i0", 256, "o", "t");   // split %y.i0 by 256 -> o, t
//   w.parallelize("y", t, ParallelType::kBlockX);      // parallelize %y.t on block.x
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module/step.h"
#include "ir/step/step_applier.h"

namespace fusebox {

class StepWriter {
 public:
  explicit StepWriter(const Graph& fusion) : graph_(fusion), applier_(graph_) {}
  StepWriter(const StepWriter&) = delete;

  const Graph& graph() const { return graph_; }
  const std::vector<Step>& steps() const { return steps_; }
  // The tensor of this name. Throws kInternal without one.
  ValueId tensor(std::string_view name) const;
  // The names of a tensor's loops, outermost first.
  std::vector<std::string> loops(std::string_view tensor) const;

  // Each throws what applying the step throws. Tensors and domains go by their names.
  std::pair<std::string, std::string> split(std::string_view tensor, std::string_view domain, int64_t factor,
                                            std::string_view outer, std::string_view inner);
  std::string merge(std::string_view tensor, std::string_view outer, std::string_view inner, std::string_view name);
  // Merges a list of loops, outermost first, into one; a list of one stays as it is.
  std::string merge(std::string_view tensor, std::span<const std::string> domains, std::string_view name);
  std::pair<std::string, std::string> swizzle(std::string_view tensor, std::string_view first, std::string_view second,
                                              std::string_view first_name, std::string_view second_name);
  // Nothing if the loops stand in this order already.
  void reorder(std::string_view tensor, std::span<const std::string> domains);
  void parallelize(std::string_view tensor, std::string_view domain, ParallelType type);
  // The new tensor's name.
  std::string cache_after(std::string_view tensor);
  std::string cache_before(std::string_view tensor);
  std::string cache_fork(std::string_view tensor);
  std::string recompute(std::string_view tensor, std::string_view reader);
  void set_memory_type(std::string_view tensor, MemoryType memory);
  void set_loop_domain(std::string_view tensor, std::string_view like);
  void transform_like(std::string_view tensor, std::span<const std::string> others = {});
  void parallelize_like(std::string_view tensor, std::span<const std::string> others = {});
  void assume_multiple(std::string_view size, int64_t divisor);
  void inline_at(std::string_view tensor, std::string_view domain);
  void inline_most(std::span<const std::string> tensors = {});

 private:
  void add(Step step);
  std::string free_domain(std::string_view tensor, std::string_view wanted, std::string_view besides = {}) const;
  std::string copy(StepKind kind, std::string_view tensor, std::string_view name, std::string_view reader = {});
  void like(StepKind kind, std::string_view tensor, std::span<const std::string> others);

  Graph graph_;
  StepApplier applier_;
  std::vector<Step> steps_;
};

}  // namespace fusebox
