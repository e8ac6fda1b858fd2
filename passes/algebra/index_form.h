// The value types of the index algebra (passes/algebra/index_algebra.h): forms and their parts.
//
// A form is an integer polynomial in normal form: a constant plus a sum of coefficient × product of atoms. An atom is a
// symbol (a run-time scalar), a loop variable, a digit of another atom or form
//
//     digit(base, divisor, range) = (base div divisor) mod range        (without range: base div divisor)
//
// an xor of forms, or an opaque operation on forms.
//
// Example: with o in [0, ceil(n / 128)) and t in [0, 128), a split domain has the value `128*o + t`. Its quotient by 64
// is `2*o + t / 64`.
//
// Forms, atoms and the views below are ids in one IndexAlgebra. They stay valid until it is cleared. A form names the
// algebra that made it, and using it with another one is an internal error. A copy of an algebra takes the forms of the
// original.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace fusebox {

/// A value in normal form. Two forms of one algebra are `==` exactly if their normal forms are the same, and then they
/// are equal at every point. The order is that of first creation: it is deterministic and means nothing else. The
/// default is the constant 0 of every algebra.
struct Form {
  uint32_t id = 0;
  uint32_t owner = 0;  ///< the algebra that made it, by its number; 0 for the constant 0
  friend auto operator<=>(const Form&, const Form&) = default;
};

/// An atom of one algebra.
struct AtomId {
  uint32_t id = 0;
  friend auto operator<=>(const AtomId&, const AtomId&) = default;
};

enum class AtomKind : uint8_t {
  kSymbol,     ///< a run-time scalar; `id` is the caller's
  kLoop,       ///< a loop variable; `id` is the caller's
  kDigit,      ///< (whole div divisor) mod range; divisor and range are at least 1 if the nest has points
  kNamed,      ///< a form without loops that symbol_of made one factor; it equals args[0]
  kXor,        ///< args[0] ^ args[1] ^ …, on two's complement
  kQuotient,   ///< args[0] div args[1], Euclidean; 0 if args[1] is 0
  kRemainder,  ///< args[0] mod args[1], Euclidean; 0 if args[1] is 0
  kMin,        ///< the smaller of args[0] and args[1]
  kMax,        ///< the larger of args[0] and args[1]
  kSum,        ///< args[0] + args[1], with constants that do not fit in 64 bits
  kProduct,    ///< args[0] * args[1], with constants that do not fit in 64 bits, or with too many terms
};

/// How to compute an atom. Only the members of its kind are set.
struct AtomView {
  AtomKind kind = AtomKind::kSymbol;
  int id = -1;                ///< kSymbol, kLoop
  Form whole;                 ///< kDigit: the value that it is a digit of
  Form divisor;               ///< kDigit: without loops, at least 1
  std::optional<Form> range;  ///< kDigit: without loops, at least 1; none: no remainder is taken
  std::vector<Form> args;     ///< all other kinds; a free order depends only on their structure
};

/// coefficient × product of the factors; an atom may occur more than once.
struct TermView {
  int64_t coefficient = 0;
  std::vector<AtomId> factors;
};

/// The bounds of a value at every point of the nest, as forms without loops. None if nothing is known.
struct FormBounds {
  std::optional<Form> lower;
  std::optional<Form> upper;  ///< inclusive
};

struct IntBounds {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;  ///< inclusive
};

/// value = coefficient × loop + rest. Neither part depends on the loop.
struct LinearForm {
  Form coefficient;
  Form rest;
};

struct DivMod {
  Form quotient;
  Form remainder;
};

}  // namespace fusebox
