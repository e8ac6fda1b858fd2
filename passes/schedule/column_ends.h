// Copies for ops behind column sums, where these ops read what the rows read too: the vector of a logsumexp of columns is
// subtracted first and added again. Loops that reach such an op from the rows would run it in all blocks, and these would
// wait for the sum. So the op reads copies of its own, and its loops come from the sum: the block that ends the sum runs it.
//
//   // %m_1 = set %m; %d = sub %x, %b of %m_1; %c = sum %e over [0]; %l = log %c; %o = add %l, %m_1
//   recompute %m_1 for %o -> m_1_1
//   transform_like %c to [%o, %l, %m_1_1]
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/schedule/fresh_names.h"
#include "passes/schedule/reduction_space.h"
#include "passes/schedule/step_draft.h"

namespace fusebox {

class ColumnEnds {
 public:
  // Whether `split_off` makes few copies, and the rows still hang together.
  static bool are_few(const Graph& fusion, const ReductionSpace& space);
  // Adds the copies to `steps`. `cached` names the copies of inputs that steps have made, by input; no output has one yet.
  // Nothing if too much would be made again, or if loops of the rows would not reach all that needs them.
  static std::optional<ColumnEnds> split_off(const Graph& fusion, const ReductionSpace& space,
                                             const std::map<std::string, std::string>& cached, FreshNames& names,
                                             StepDraft& steps);

  // Whether the rows and ops behind sums read something in common. If not, all loops may come from the rows.
  bool are_needed() const { return are_needed_; }
  // The copies of cached inputs, by input.
  const std::map<std::string, StepDraft::Names>& copies() const { return copies_; }
  // Gives loops, or parallel types, to all tensors: to those of the rows like the reference, and to the others like their sums.
  void transform(const std::string& reference, StepDraft& steps) const;
  void parallelize(const std::string& reference, StepDraft& steps) const;

 private:
  friend class ColumnEndsFinder;

  using Like = void (StepDraft::*)(StepDraft::Name, const StepDraft::Names&);
  void each(const std::string& reference, StepDraft& steps, Like like) const;

  bool are_needed_ = false;
  std::map<std::string, StepDraft::Names> copies_;
  StepDraft::Names rows_;                         // the tensors of the rows
  std::map<std::string, StepDraft::Names> ends_;  // by sum: the tensors that get their loops from it
};

}  // namespace fusebox
