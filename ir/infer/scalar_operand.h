// Scalars among the operands of an op: the dtype that each is converted to, and whether the constants among them have a
// value there.
//
// Invariants: a scalar beside tensors is converted to the dtype that type_rule.h says, as `cast` converts; what is not
// known before a run wraps and rounds. A constant, and a scalar that constants alone define, is refused with
// kConstantRange if an integer dtype cannot hold it, or if a finite number becomes infinite. Rounding is no reason.
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

// Of a fusion's pointwise op: the dtype that operand `i` is converted to; nothing where it stays what it is.
std::optional<Dtype> scalar_dtype(const Graph& g, OpKind kind, std::span<const ValueId> operands, size_t i);

// Whether a dtype has this value, perhaps rounded.
bool holds(Dtype to, Dtype from, ConstantBits bits);

// The first operand whose constant is out of range, or that an iota cannot count by.
std::optional<size_t> unheld_constant(const Graph& g, OpKind kind, const Attrs& attrs,
                                      std::span<const ValueId> operands);
// What is wrong with the operand of an iota, as far as it is known: a step of 0, a start or step that is not finite.
struct IotaObjection {
  size_t operand;
  std::string message;
};
std::optional<IotaObjection> iota_objection(const Graph& g, const Attrs& attrs, std::span<const ValueId> operands,
                                            const Bindings& bindings = {});

// Throws kConstantRange where there is one, and kBadAttribute for an iota that does not count.
void check_constants(const Graph& g, OpKind kind, const Attrs& attrs, std::span<const ValueId> operands);

}  // namespace fusebox
