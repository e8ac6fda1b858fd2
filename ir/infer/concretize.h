// Concretization: once the inputs are known, steps resolve the symbolic axes of a program.
//
// Three kinds of ops have symbolic axes of their own:
// - an input: the extent may be 1, and then the axis is a broadcast;
// - expand and broadcast_in_dim: the target may equal the operand's extent (iteration) or stretch an extent of 1 (an
//   expanded broadcast). If the target is 1, the axis may also be a broadcast of one element, which a reader stretches;
// - reshape: its groups may not follow from the extents.
// Symbolic axes of other ops follow from these by inference.
//
// Invariants: a plan depends only on the program and the bound sizes. Its steps stand in the order of the ops, inputs
// first. Applying them resolves each axis that was symbolic. Scalars that inference makes on the way may leave an axis
// symbolic that was none before; another plan resolves it. The groups of a reshape are pairs of counts of axes; axes of
// the constant extent 1 do not count.
//
//   // %y = expand %x to [%k] : f32[?%k], with %x of extent 1 and %k = 5
//   plan_concretize(g, bindings)  ==  { concretize %y.i0 became broadcast }
//   // %k = 1, and a reader adds %y to a tensor of 3 elements
//   plan_concretize(g, bindings)  ==  { concretize %y.i0 became broadcast width 1 }
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/domain/axis_relation.h"
#include "ir/module/step.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

// Whether steps resolve the symbolic axes of this op's result. Symbolic axes of other ops follow from their
// operands.
bool has_own_symbolic_axes(OpKind kind);

// Whether some axis of the program is not resolved.
bool has_symbolic_axes(const Graph& g);
// How many axes of a tensor no step has resolved.
size_t symbolic_axes(const Graph& g, ValueId tensor);

// Whether an op gives this axis a size, as an expanded broadcast, or as an iteration of the operand's extent. If the size is
// 1, the axis may still be resolved to one element.
bool is_stretched(const Graph& g, DomainId axis);

// The kind that a symbolic axis gets.
struct Resolution {
  IterType type = IterType::kIteration;
  // Only for a broadcast that an op stretches: the op's extent is 1, which the launch checks, so the axis is one element
  // and not an expanded broadcast.
  bool is_one_element = false;
};

// Axes that an op stretches to 1 become broadcasts of one element only if the program is refused otherwise. Throws
// kSizeMismatch if a size fits no choice, kNotConcretized if a size is not bound.
std::vector<Step> plan_concretize(const Graph& g, const Bindings& bindings, const Defects& defects = {});

// Resolves a symbolic axis of an input, expand or broadcast_in_dim to kIteration or kBroadcast. A stretched axis can also be
// resolved to one element. Infers the ops again that depend on the axis.
void concretize_domain(Graph& g, DomainId domain, Resolution to, const Defects& defects = {});
// Gives a symbolic reshape its groups. Infers the ops again that depend on it.
void concretize_reshape(Graph& g, TensorId tensor, std::span<const int64_t> groups, const Defects& defects = {});

// The error that the functions above would throw, or nothing.
std::optional<Error> concretize_domain_error(const Graph& g, DomainId domain, Resolution to);
std::optional<Error> concretize_reshape_error(const Graph& g, TensorId tensor, std::span<const int64_t> groups);

}  // namespace fusebox
