// Scalars among the operands of an op: the dtype that each is converted to, and whether this dtype holds the constants
// among them.
//
// Invariants: a scalar beside tensors is converted as `cast` does, to the dtype that type_rule.h gives. A value that is
// not known before a run wraps or rounds. A constant, or a scalar that constants alone define, is refused with
// kConstantRange if an integer dtype cannot hold it or if a finite number would become infinite. Rounding alone is
// accepted.
//
//   // i8[%n] + 300
//   scalar_dtype(g, OpKind::kAdd, operands, 1) == Dtype::kInt8;  unheld_constant(g, op, {}) == 1
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox {

// The dtype that operand `i` of a fusion's pointwise op is converted to. Nothing if it is not converted.
std::optional<Dtype> scalar_dtype(const Graph& g, OpKind kind, std::span<const ValueId> operands, size_t i);

// Whether a dtype holds this value, perhaps rounded.
bool holds(Dtype to, Dtype from, ConstantBits bits);

// The first operand whose constant is out of range or does not suit an iota, or nothing.
std::optional<size_t> unheld_constant(const Graph& g, OpKind kind, const Attrs& attrs,
                                      std::span<const ValueId> operands);
// The fault of an operand of an iota, as far as its value is known: a step of 0, or a start or step that is not finite.
struct IotaObjection {
  size_t operand;
  std::string message;
};
std::optional<IotaObjection> iota_objection(const Graph& g, const Attrs& attrs, std::span<const ValueId> operands,
                                            const Bindings& bindings = {});

// Throws kConstantRange for a constant out of range, and kBadAttribute for an iota that cannot count.
void check_constants(const Graph& g, OpKind kind, const Attrs& attrs, std::span<const ValueId> operands);

}  // namespace fusebox
