// Scalars of a graph: constructing them simplified, evaluating them, and binding the symbols of a program to its
// inputs.
//
// Invariants: integers wrap at their dtype's width; x / 0, x mod 0 and the Euclidean forms by 0 give 0; MIN / −1 gives
// MIN; shifts by the width or more (or negative) give 0 or, arithmetic to the right, the sign. Floats are evaluated
// only where IEEE says every bit (+ − × ÷, comparisons, min, max, casts, rounding); what else is not known has no
// value. A domain's extent counts its elements in a loop (1 for a broadcast); its size is what a shape shows (the
// expanded extent).
//
//   ValueId e = scalar::ceil_div(g, Graph::body(), n, constant_index(g, 128));   // n itself if the divisor is 1
//   Bindings b = bind_sizes(g, {{{.shape = {5, 7}, .strides = {7, 1}}}});
//   evaluate_extent(g, domain, b) == 5
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

namespace scalar {

// Where a new op goes: at the end of a region, or before an op of it.
struct Place {
  RegionId region;
  OpId before;

  Place(RegionId region) : region(region) {}
  // Before an op that stands in a region.
  static Place before_op(const Graph& g, OpId op);
};

// The op on these scalars: a constant if it can be folded, an operand if it changes nothing, else a new op.
// The result's dtype is `declared`, or inferred.
ValueId make(Graph& g, Place place, OpKind kind, std::vector<ValueId> operands, std::optional<Dtype> declared = {},
             Attrs attrs = {});

ValueId add(Graph& g, Place place, ValueId a, ValueId b);
ValueId sub(Graph& g, Place place, ValueId a, ValueId b);
ValueId mul(Graph& g, Place place, ValueId a, ValueId b);
ValueId neg(Graph& g, Place place, ValueId a);
// Euclidean; `nonnegative`: the caller proved a ≥ 0 and b > 0.
ValueId floor_div(Graph& g, Place place, ValueId a, ValueId b, bool nonnegative = false);
ValueId floor_mod(Graph& g, Place place, ValueId a, ValueId b, bool nonnegative = false);
ValueId ceil_div(Graph& g, Place place, ValueId a, ValueId b);
ValueId minimum(Graph& g, Place place, ValueId a, ValueId b);
ValueId maximum(Graph& g, Place place, ValueId a, ValueId b);
ValueId bit_xor(Graph& g, Place place, ValueId a, ValueId b);
ValueId lt(Graph& g, Place place, ValueId a, ValueId b);
ValueId le(Graph& g, Place place, ValueId a, ValueId b);
ValueId ge(Graph& g, Place place, ValueId a, ValueId b);
ValueId eq(Graph& g, Place place, ValueId a, ValueId b);
ValueId logical_and(Graph& g, Place place, ValueId a, ValueId b);
ValueId logical_or(Graph& g, Place place, ValueId a, ValueId b);
ValueId logical_not(Graph& g, Place place, ValueId a);
ValueId where(Graph& g, Place place, ValueId condition, ValueId a, ValueId b);
ValueId cast(Graph& g, Place place, ValueId a, Dtype dtype);

}  // namespace scalar

// For each value of a graph, what it is known to be.
using Bindings = std::vector<std::optional<ConstantBits>>;

struct TypedBits {
  Dtype dtype;
  ConstantBits bits;
};
// One op on constants, rounded once to `result`; nothing if the op is not evaluated here.
std::optional<ConstantBits> evaluate_op(OpKind kind, Dtype result, std::span<const TypedBits> operands);

// A scalar from constants and bindings (an empty list: constants alone); nothing if it depends on something unbound.
std::optional<ConstantBits> evaluate(const Graph& g, ValueId v, const Bindings& bindings = {});
// The same for integers, bool and index.
std::optional<int64_t> evaluate_integer(const Graph& g, ValueId v, const Bindings& bindings = {});

// -- extents of domains, derived ones too
// The scalar that is the domain's extent, made where there is none yet.
ValueId emit_extent(Graph& g, scalar::Place place, DomainId d);
// The scalar that is the domain's size: the expanded extent of a broadcast.
ValueId emit_size(Graph& g, scalar::Place place, DomainId d);
std::optional<int64_t> evaluate_extent(const Graph& g, DomainId d, const Bindings& bindings = {});
std::optional<int64_t> evaluate_size(const Graph& g, DomainId d, const Bindings& bindings = {});
// The shape of a tensor as its consumers see it; nothing if an extent is unknown.
std::optional<std::vector<int64_t>> evaluate_shape(const Graph& g, ValueId tensor, const Bindings& bindings = {});

}  // namespace fusebox
