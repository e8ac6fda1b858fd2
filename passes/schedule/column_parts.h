// Sums of columns in two stages, for rows that blocks walk. A block adds up a group of rows in its registers, and stores a
// part of each sum. Behind a barrier of the grid all blocks share the columns out, and add up the parts:
//
//   // %dw = sum %e over [0], groups of 32 rows, 264 blocks
//   rfactor %dw over [%dw.s] -> p       // %p[group, column], in global memory
//   cache_before %p -> l                // in registers, with the loops of the rows
//
// The parts of a group have the loops of the rows without those of the group's rows. The sums have loops of their own:
// grid.x and block.x share the columns, block.y the parts.
#pragma once

#include <string>
#include <vector>

#include "passes/schedule/fresh_names.h"
#include "passes/schedule/heuristics.h"
#include "passes/schedule/reduction_access.h"
#include "passes/schedule/reduction_space.h"
#include "passes/schedule/step_draft.h"

namespace fusebox {

class ColumnParts {
 public:
  // Whether all column sums of the space can be made so, and nothing that is made of one reads another tensor.
  static bool suits(const Graph& fusion, const ReductionSpace& space);

  // `h` is a choice of the scheduler inner_outer with the number "walkers".
  ColumnParts(const Graph& fusion, const ReductionSpace& space, const ReductionAccess& access, const Heuristics& h,
              FreshNames& names, StepDraft& steps);

  // Makes the parts. The reference has no loops yet.
  void split_off();
  // The tensors that have the loops of the reference: all but the sums, what is made of them, and the parts.
  StepDraft::Names of_rows() const;
  // Gives the parts and the sums their loops.
  void schedule();

 private:
  struct Sum {
    std::string name, part, local;  // the sum, its parts in global memory, and these in registers
    std::string groups;             // the sum's loop over the groups of rows, and the same of its parts
    std::string column;             // the axis of the sum that it keeps
    StepDraft::Names made;          // what is made of the sum
  };

  std::string domain(const std::string& wanted) { return names_.domain(wanted); }
  bool is_of_sums(const std::string& name) const;
  void schedule_parts(const Sum& sum);
  void schedule_sum(const Sum& sum);

  const Graph& g_;
  const ReductionSpace& space_;
  const ReductionAccess& access_;
  const Heuristics& h_;
  FreshNames& names_;
  StepDraft& steps_;
  std::vector<Sum> sums_;
};

}  // namespace fusebox
