// Common scalar arithmetic of a kernel, computed once and outside of loops.
//
// Both functions move or drop only ops that read nothing but scalars and have no effect; a load, a store and what
// stands between them stays as it is. They return whether they changed the graph.
//
// An op that leaves a loop may be computed although the loop runs no iteration, and index arithmetic that leaves an
// `if` on its way out of a loop although the predicate is false: every scalar op is defined for every operand, an
// executor must not trap in one (a division marked `nonnegative` may then see a divisor of 0; its result is not used),
// and an index fits its width at every loop point, holes included. Nothing leaves an `if` that stands in no loop.
//
//   for 0, %n, 1 { index %i            %a = mul %m, 4
//     %a = mul %m, 4            →      for 0, %n, 1 { index %i
//     %b = add %a, %i                    %b = add %a, %i
#pragma once

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

// The same op on the same operands, where an earlier result is visible, is that result.
bool share_common_scalars(Graph& kernel, const Defects& defects = {});
// An op whose operands are all defined outside of the loop that it stands in moves before that loop, as far out as it
// can.
bool move_invariants_out(Graph& kernel, const Defects& defects = {});
// Both, until neither changes anything.
bool hoist(Graph& kernel, const Defects& defects = {});

}  // namespace fusebox
