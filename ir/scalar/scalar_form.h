// A scalar as an integer polynomial: a constant plus a sum of terms, each a coefficient times a product of atoms. An
// atom is a scalar that is no sum, difference, product or constant. Two scalars of equal form are equal if nothing
// overflows.
//
// Invariants: no term has coefficient 0. Terms, and the factors of a term, stand in the order in which they were first
// met. The ops that are emitted from a form therefore follow from the program's text and not from ids. A scalar whose
// form would grow too large is an atom.
//
//   form of `n − k + k`  ==  1·[n];   form of `(m·n)` divided by form of `n`  ==  1·[m]
#pragma once

#include <optional>
#include <vector>

#include "ir/scalar/scalar.h"

namespace fusebox {

struct ScalarForm {
  struct Term {
    int64_t coefficient = 0;
    std::vector<ValueId> factors;  // atoms, in the order in which they were met
    std::vector<ValueId> key;      // the same atoms, sorted
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  static ScalarForm of(int64_t constant) { return {constant, {}}; }
  static ScalarForm atom(ValueId v) { return {0, {{1, {v}, {v}}}}; }
  bool is_constant() const { return terms.empty(); }
  // The atom, if the form is a single atom.
  std::optional<ValueId> as_atom() const;
  // Whether both forms are the same sum. The order of terms does not count.
  bool equals(const ScalarForm& other) const;
};

// a + b × times_b, and a × b. They return nothing if a coefficient grows too large or the form has too many terms.
std::optional<ScalarForm> add(const ScalarForm& a, const ScalarForm& b, int64_t times_b = 1);
std::optional<ScalarForm> mul(const ScalarForm& a, const ScalarForm& b);
// a / b, if b is one term or a constant other than 0, and b divides every term of a; otherwise nothing.
std::optional<ScalarForm> divide_exactly(const ScalarForm& a, const ScalarForm& b);

ScalarForm form_of(const Graph& g, ValueId v);
// Whether the form is 0 or more for all inputs because no part of it is negative: neither the constant nor a
// coefficient nor an atom. An atom counts as not negative if it is a size, or a quotient, remainder, minimum or maximum
// of such forms.
bool is_size_sum(const Graph& g, const ScalarForm& form);
bool is_size_sum(const Graph& g, ValueId v);
// The domain's extent or size as a form, or nothing if a transform keeps it from being a polynomial.
std::optional<ScalarForm> extent_form(const Graph& g, DomainId d);
std::optional<ScalarForm> size_form(const Graph& g, DomainId d);
// The domain's extent, if it is the same for all inputs.
std::optional<int64_t> constant_extent(const Graph& g, DomainId d);

// A scalar of this form: one that stands before the place, if there is one, else the result of new ops.
ValueId emit_form(Graph& g, scalar::Place place, const ScalarForm& form);

}  // namespace fusebox
