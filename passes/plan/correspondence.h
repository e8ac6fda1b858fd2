// A correspondence says which loops of a producer are the same as its consumer's: the same shared loop, or the same
// thread.
//
// There are two proofs. In the nest: read by the consumer, the producer's loop has the form of the consumer's loop
// variable. Both are then equal at every loop point, holes included. At elements: both loops are one function of the
// consumer's root domains. The second proof is enough here, because a consumer reads only at elements, under its
// checks. No index and no check comes from it.
//
//   i is split by 64 → o, a in both. The producer splits a by 64 → b{1}, … and b by 8. In the holes of b,
//   i = 64·o + 64·b + … leaves the tile o. At every element b is 0, so the loop o is shared.
#pragma once

#include "passes/plan/kernel_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

// Compares the loops on the first call for an operand and keeps the result in the plan.
const Correspondence& correspondence(KernelPlan& plan, OpId consumer, size_t operand);
// Whether the operand's elements that the consumer reads, at any of its own elements, lie inside of this domain of the
// operand's producer. Loops that are made from the domain do not tell: a swizzle wraps an element that lies
// outside, and a split rounds up.
bool reads_within(const KernelPlan& plan, OpId consumer, size_t operand, DomainId domain);
// Whether the same transforms make all loops of the operand's producer and all loops of the consumer from axes that are
// read at one place. At each loop point the consumer then reads what the producer made at the same point, in whatever
// nest that was.
bool walks_alike(const KernelPlan& plan, OpId consumer, size_t operand);
// A view of the op at its elements: first its state, then the root domains, and the broadcasts of its loops, as the
// variables of its forms.
ViewState state_at_elements(const KernelPlan& plan, OpId op);
void stand_at_elements(const KernelPlan& plan, OpId op, StatementView& view);
// Whether a thread (or a block, if `grid`) reads an element that another one makes.
bool crosses_threads(KernelPlan& plan, OpId producer, OpId consumer, bool grid);

}  // namespace fusebox
