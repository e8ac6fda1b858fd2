// Loops that a resize may cut short of their tensor's elements. No loop of an output is cut short, and a loop that the
// readers share does no harm: they read no element that it does not make. For any other loop a proof is needed that the
// readers stay inside of it.
//
//   %c = set %x, looped like %s = slice %x from [2] to [9]: the loop has the elements 2 to 8, as all of %s read
#pragma once

#include <vector>

#include "passes/nest/nest.h"

namespace fusebox {

struct CutLoop {
  OpId op;
  size_t position = 0;
  DomainId cut;  // what the loop is made from: no loop point makes the elements that lie outside of its extent
};

// The cut loops that readers do not share. `check_sharing` proves that each of their readers stays inside.
std::vector<CutLoop> cut_loops(const Graph& g, const NestPlan& plan);
// The refusal of a loop that a reader leaves.
[[noreturn]] void refuse_cut_loop(const Graph& g, CutLoop cut);

}  // namespace fusebox
