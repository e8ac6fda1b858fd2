// `StepWriter` writes a schedule. It drafts each step and applies it to a copy of the fusion, so that the next step can be
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

#include "ir/step/step_applier.h"
#include "passes/schedule/step_draft.h"

namespace fusebox {

class StepWriter {
 public:
  using Name = StepDraft::Name;
  using Names = StepDraft::Names;

  // `count`, if given, is the number of steps applied so far; it grows with every one.
  explicit StepWriter(const Graph& fusion, int64_t* count = nullptr)
      : graph_(fusion), applier_(graph_), count_(count) {}
  // A copy goes on from where the other one is, and counts its own steps only.
  StepWriter(const StepWriter& other)
      : graph_(other.graph_), applier_(graph_), draft_(other.draft_), count_(other.count_) {}
  StepWriter& operator=(const StepWriter&) = delete;

  const Graph& graph() const { return graph_; }
  const std::vector<Step>& steps() const { return draft_.steps(); }
  // The graph. The writer must not be used afterwards.
  Graph take_graph() { return std::move(graph_); }
  // The tensor of this name. Throws kInternal without one.
  ValueId tensor(Name name) const;
  // The names of a tensor's loops, outermost first.
  Names loops(Name tensor) const;

  // Each throws what applying the step throws.
  std::pair<std::string, std::string> split(Name tensor, Name domain, int64_t factor, Name outer, Name inner);
  std::string merge(Name tensor, Name outer, Name inner, Name name);
  // Merges a list of loops, outermost first, into one; a list of one stays as it is.
  std::string merge(Name tensor, std::span<const std::string> domains, Name name);
  std::pair<std::string, std::string> swizzle(Name tensor, Name first, Name second, Name first_name, Name second_name);
  // Nothing if the loops stand in this order already.
  void reorder(Name tensor, const Names& domains);
  void parallelize(Name tensor, Name domain, ParallelType type);
  // The new tensor's name.
  std::string cache_after(Name tensor);
  std::string cache_before(Name tensor);
  std::string cache_fork(Name tensor);
  std::string recompute(Name tensor, Name reader);
  void set_memory_type(Name tensor, MemoryType memory);
  void set_loop_domain(Name tensor, Name like);
  void transform_like(Name tensor, const Names& others = {});
  void parallelize_like(Name tensor, const Names& others = {});
  void assume_multiple(Name size, int64_t divisor);
  void assume_equal(Name size, int64_t value);
  void inline_at(Name tensor, Name domain);
  // Whether the tensor shares this loop with its readers. If not, no step is written.
  bool try_inline_at(Name tensor, Name domain);
  void inline_most(const Names& tensors = {});
  void dependent_launch();

 private:
  // Drafts a step by a call of `StepDraft`, and applies it.
  template <class... Parameters, class... Arguments>
  void write(void (StepDraft::*step)(Parameters...), Arguments&&... arguments) {
    (draft_.*step)(arguments...);
    if (count_) ++*count_;
    applier_.apply(draft_.steps().back());
  }
  // The wanted name, numbered if a value has it.
  std::string free_value(Name wanted) const;
  std::string free_domain(Name tensor, Name wanted, Name besides = {}) const;
  std::pair<std::string, std::string> free_domains(Name tensor, Name first, Name second) const;

  Graph graph_;
  mutable StepApplier applier_;  // its index of names grows where they are looked up
  StepDraft draft_;
  int64_t* count_;
};

}  // namespace fusebox
