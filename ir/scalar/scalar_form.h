// A scalar as an integer polynomial: constant + sum of coefficient × product of atoms, where an atom is a scalar that
// is no sum, difference, product or constant. Two scalars of equal form are equal wherever nothing overflows.
//
// Invariants: no term has coefficient 0; terms stand in the order in which they were first met, the factors of a term
// too, so that what is emitted from a form follows from the program's text and not from ids. A form that grows too
// large is an atom.
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
    std::vector<ValueId> factors;  // in the order met
    std::vector<ValueId> key;      // sorted
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  static ScalarForm of(int64_t constant) { return {constant, {}}; }
  static ScalarForm atom(ValueId v) { return {0, {{1, {v}, {v}}}}; }
  bool is_constant() const { return terms.empty(); }
  // The value itself, if the form is one atom.
  std::optional<ValueId> as_atom() const;
  // Of two forms as sums: the order of terms does not count.
  bool equals(const ScalarForm& other) const;
};

// Nothing where a coefficient leaves 64 bits or the form has too many terms.
std::optional<ScalarForm> add(const ScalarForm& a, const ScalarForm& b, int64_t times_b = 1);
std::optional<ScalarForm> mul(const ScalarForm& a, const ScalarForm& b);
// a / b where b is one term (or a constant other than 0) that divides every term of a.
std::optional<ScalarForm> divide_exactly(const ScalarForm& a, const ScalarForm& b);

ScalarForm form_of(const Graph& g, ValueId v);
// Whether it is a sum of a constant and of products of sizes (their quotients, minima and maxima too) without a
// negative part: 0 or more whatever the inputs are.
bool is_size_sum(const Graph& g, const ScalarForm& form);
bool is_size_sum(const Graph& g, ValueId v);
// The domain's extent or size as a form, where split, merge and resize keep it polynomial; nothing otherwise.
std::optional<ScalarForm> extent_form(const Graph& g, DomainId d);
std::optional<ScalarForm> size_form(const Graph& g, DomainId d);

// A scalar of this form: one that stands before the place if there is one, else new ops.
ValueId emit_form(Graph& g, scalar::Place place, const ScalarForm& form);

}  // namespace fusebox
