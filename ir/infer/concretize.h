// Concretization: what could not be known of a program's shapes without its inputs is decided once they are known, as
// steps.
//
// A symbolic axis is one of three: an input's whose extent may be 1 (then a broadcast), the target of an expand or
// broadcast_in_dim that may be the operand's own extent (iteration) or stretch one of 1 (a broadcast, expanded), or an
// axis of a reshape whose groups do not follow from its extents. Symbolic axes of other ops follow from these by
// inference.
//
// Invariants: a plan depends on the program and the bound sizes alone; its steps stand in the order of the ops, inputs
// first, and applying them leaves no symbolic axis. A reshape's groups are pairs of counts of axes, those of the
// constant extent 1 not counted.
//
//   // %y = expand %x to [%k] : f32[?%k], with %x of extent 1 and %k = 5
//   plan_concretize(g, bindings)  ==  { concretize %y.i0 became broadcast }
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

// Whether symbolic axes of this op's result are resolved by steps; those of other ops follow from their operands'.
bool has_own_symbolic_axes(OpKind kind);

// Throws kSizeMismatch where a size fits no choice, kNotConcretized where a size is not bound.
std::vector<Step> plan_concretize(const Graph& g, const Bindings& bindings, const Defects& defects = {});

// Resolves a symbolic axis of an input, expand or broadcast_in_dim to kIteration or kBroadcast and infers again what
// depends on it.
void concretize_domain(Graph& g, DomainId domain, IterType type, const Defects& defects = {});
// Gives a symbolic reshape its groups and infers again what depends on it.
void concretize_reshape(Graph& g, TensorId tensor, std::span<const int64_t> groups, const Defects& defects = {});

// Why the above would throw, or nothing.
std::optional<Error> concretize_domain_error(const Graph& g, DomainId domain, IterType type);
std::optional<Error> concretize_reshape_error(const Graph& g, TensorId tensor, std::span<const int64_t> groups);

}  // namespace fusebox
