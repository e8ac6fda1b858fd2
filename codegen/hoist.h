// Computes common scalar arithmetic of a kernel once, and outside of loops.
//
// The functions move or drop only ops that read nothing but scalars and have no effect. Loads, stores and everything
// else keep their order, and run as often as before. Each function returns whether it changed the graph.
//
// A moved op may run where it did not run before: before a loop without iterations, or, for index arithmetic on its
// way out of a loop, outside of an `if` whose predicate is false. This is safe for three reasons. Every scalar op is
// defined for every operand. An executor must not trap in one: a division marked `nonnegative` may see a divisor of 0,
// and nothing reads its result. An index fits its width at every loop point, holes included. Nothing leaves an `if`
// that stands in no loop.
//
//   for 0, %n, 1 { index %i            %a = mul %m, 4
//     %a = mul %m, 4            →      for 0, %n, 1 { index %i
//     %b = add %a, %i                    %b = add %a, %i
#pragma once

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

// Replaces an op by an earlier, visible one of the same kind, attributes and operands.
bool share_common_scalars(Graph& kernel, const Defects& defects = {});
// Moves an op out of a loop if all its operands are defined outside of that loop, as far out as it can.
bool move_invariants_out(Graph& kernel, const Defects& defects = {});
// Turns a loop that holds nothing but scalar ops and an `if` into an `if` around the loop, if the predicate is the same
// in each iteration.
//
//   for 0, 8, 1 { index %i  if %p { … } }   →   if %p { for 0, 8, 1 { index %i  … } }
bool move_conditions_out(Graph& kernel);
// Alternates all until none changes anything.
bool hoist(Graph& kernel, const Defects& defects = {});

}  // namespace fusebox
