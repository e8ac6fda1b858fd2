// Scalars of a graph: making them in simplified form, and evaluating them. `bind_sizes` (bind.h) binds the symbols of a
// program to its inputs.
//
// Invariants:
// - Integers wrap at their dtype's width. x / 0, x mod 0 and the Euclidean forms by 0 give 0. MIN / −1 gives MIN. A
//   shift by the width or more, or by a negative amount, gives 0; an arithmetic shift to the right gives the sign.
// - Floats are evaluated only if IEEE defines every bit: + − × ÷, comparisons, min, max, casts, rounding. The result of
//   any other op is not known.
// - A domain's extent is the number of iterations of its loop (1 for a broadcast). Its size is the number that a shape
//   shows (the expanded extent).
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

// The place of a new op: the end of a region, or before one of its ops.
struct Place {
  RegionId region;
  OpId before;

  Place(RegionId region) : region(region) {}
  // The place before an op. Throws kInternal if the op stands in no region.
  static Place before_op(const Graph& g, OpId op);
};

// The result of an op on these scalars: a constant if the op folds, an operand if the op changes nothing, the result of
// an equal op before the place if there is one, else that of a new op. Its dtype is `declared`, or inferred.
ValueId make(Graph& g, Place place, OpKind kind, std::vector<ValueId> operands, std::optional<Dtype> declared = {},
             Attrs attrs = {});

ValueId add(Graph& g, Place place, ValueId a, ValueId b);
ValueId sub(Graph& g, Place place, ValueId a, ValueId b);
ValueId mul(Graph& g, Place place, ValueId a, ValueId b);
ValueId neg(Graph& g, Place place, ValueId a);
// Euclidean division. `nonnegative` says that the caller proved a ≥ 0 and b > 0.
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

// For each value of a graph, its bits if they are known.
using Bindings = std::vector<std::optional<ConstantBits>>;

struct TypedBits {
  Dtype dtype;
  ConstantBits bits;
};
// Evaluates one op on constants and rounds once to `result`. Returns nothing if the op is not evaluated here.
std::optional<ConstantBits> evaluate_op(OpKind kind, Dtype result, std::span<const TypedBits> operands);

// Evaluates a scalar from constants and bindings (an empty list: from constants alone). Returns nothing if it depends
// on an unbound scalar or on an op that is not evaluated.
std::optional<ConstantBits> evaluate(const Graph& g, ValueId v, const Bindings& bindings = {});
// The same for an integer, bool or index scalar. Returns nothing for another dtype.
std::optional<int64_t> evaluate_integer(const Graph& g, ValueId v, const Bindings& bindings = {});

// -- extents of domains, derived ones included
// The scalar that is the domain's extent. New ops stand at the place if no scalar has this extent yet.
ValueId emit_extent(Graph& g, scalar::Place place, DomainId d);
// The same for the domain's size: the expanded extent of an expanded broadcast, else the extent.
ValueId emit_size(Graph& g, scalar::Place place, DomainId d);
std::optional<int64_t> evaluate_extent(const Graph& g, DomainId d, const Bindings& bindings = {});
std::optional<int64_t> evaluate_size(const Graph& g, DomainId d, const Bindings& bindings = {});
// The shape of a tensor as its consumers see it, or nothing if a size is unknown.
std::optional<std::vector<int64_t>> evaluate_shape(const Graph& g, ValueId tensor, const Bindings& bindings = {});

}  // namespace fusebox
