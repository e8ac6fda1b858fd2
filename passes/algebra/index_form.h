// The value types of the index algebra (passes/algebra/index_algebra.h): forms and what they are made of.
//
// A form is an integer polynomial in normal form:  constant + sum of coefficient × product of atoms.
// An atom is a symbol (a run-time scalar), a loop variable, a digit of another atom or form
//
//     digit(base, divisor, range) = (base div divisor) mod range        (without range: base div divisor)
//
// an xor of forms, or an opaque operation of forms. Example: with o in [0, ceil(n / 128)) and t in [0, 128),
// the value of a split domain is the form `128*o + t`; its quotient by 64 is `2*o + t / 64`.
//
// Forms, atoms and the views below belong to one IndexAlgebra and are ids in it; they stay valid until it is cleared.
// A form names the algebra that made it, and using it with another one is an internal error. A copy of an algebra takes
// the forms of the original.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace fusebox {

/// A value in normal form. Two forms of one algebra are `==` exactly if their normal forms are the same; then they
/// are equal at every point. The order is that of first creation: deterministic, and of no other meaning.
/// The default is the constant 0 of every algebra.
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
  kDigit,      ///< (whole div divisor) mod range; divisor and range are at least 1 wherever the nest has points
  kNamed,      ///< a form without loops that was made one factor by symbol_of: equal to args[0]
  kXor,        ///< args[0] ^ args[1] ^ …, on two's complement
  kQuotient,   ///< args[0] div args[1], Euclidean, 0 where args[1] is 0
  kRemainder,  ///< args[0] mod args[1], Euclidean, 0 where args[1] is 0
  kMin,        ///< the smaller of args[0] and args[1]
  kMax,        ///< the larger of args[0] and args[1]
  kSum,        ///< args[0] + args[1] whose constants would not fit in 64 bits
  kProduct,    ///< args[0] * args[1] whose constants would not fit in 64 bits, or that has too many terms
};

/// How an atom is computed. Only the members that its kind names are set.
struct AtomView {
  AtomKind kind = AtomKind::kSymbol;
  int id = -1;                ///< kSymbol, kLoop
  Form whole;                 ///< kDigit: what it is a digit of
  Form divisor;               ///< kDigit: without loops, at least 1
  std::optional<Form> range;  ///< kDigit: without loops, at least 1; none means that no remainder is taken
  std::vector<Form> args;     ///< all other kinds; where their order is free, it depends on their structure alone
};

/// coefficient × product of the factors; an atom may occur more than once.
struct TermView {
  int64_t coefficient = 0;
  std::vector<AtomId> factors;
};

/// What is known of a value at every point of the nest. Forms without loops; none where nothing is known.
struct FormBounds {
  std::optional<Form> lower;
  std::optional<Form> upper;  ///< inclusive
};

struct IntBounds {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;  ///< inclusive
};

/// value = coefficient × loop + rest, neither of which depends on the loop.
struct LinearForm {
  Form coefficient;
  Form rest;
};

struct DivMod {
  Form quotient;
  Form remainder;
};

}  // namespace fusebox
