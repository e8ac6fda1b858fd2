// Which loops of a producer correspond to a consumer's: the same shared loop, or the same thread.
//
// Two ways to know. In the nest: what the consumer's loops feed the producer's loop is the consumer's loop variable at
// every loop point, holes included. At elements: both loops are one function of the consumer's root domains. The second
// is enough here, because a consumer reads under its checks, at elements alone; no index and no check comes from it.
//
//   i split by 64 → o, a in both; y's a further by 64 → b{1}, …, b by 8: in the holes of b, i = 64·o + 64·b + … leaves
//   the tile o, yet at every element b is 0, and the loop o is shared
#pragma once

#include "passes/plan/kernel_plan.h"

namespace fusebox {

// Compared once for each operand of each op, and kept in the plan.
const Correspondence& correspondence(KernelPlan& plan, OpId consumer, size_t operand);
// Whether an element that the producer's thread (or block, for `grid`) makes is read by another one.
bool crosses_threads(KernelPlan& plan, OpId producer, OpId consumer, bool grid);

}  // namespace fusebox
