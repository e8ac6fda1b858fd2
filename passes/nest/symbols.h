// Ties a graph's scalars to the index algebra. Extents of domains and other index scalars become symbols, and extents
// that the program equates become one symbol.
//
// Two iteration domains that an op reads at the same place have the same extent at run time; `bind_sizes` and the host
// program check it. So their scalars share a symbol. It is that of a constant in the class, or else of the scalar that
// was made first.
//
//   add x[%m], y[%n]   →   symbols.of(%m) == symbols.of(%n), one symbol
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/defect.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox {

// Whether the form of an index scalar hides a sum: a part of the sum lies beyond 32 bits, so the sum is one symbol.
bool hides_sum(const Graph& g, ValueId v);

// Classes of scalars that are equal at run time.
class ExtentClasses {
 public:
  // `sizes` of one run: only a seeded defect reads them.
  explicit ExtentClasses(const Graph& g, const Defects& defects = {}, const Bindings& sizes = {});
  ValueId representative(ValueId v) const;
  // The pairs of different scalars that the program equates. The host program must check them.
  const std::vector<std::pair<ValueId, ValueId>>& equated() const { return equated_; }

 private:
  void unite(const Graph& g, ValueId a, ValueId b);

  mutable std::vector<uint32_t> parent_;
  std::vector<size_t> places_;  // of the values' ops in canonical order; made when two are equated
  std::vector<std::pair<ValueId, ValueId>> equated_;
};

// Declares the symbols of one graph in an algebra, each on first use. A symbol's id is the index of its value.
class Symbols {
 public:
  Symbols(const Graph& g, const ExtentClasses& classes, IndexAlgebra& algebra)
      : g_(g), classes_(classes), algebra_(algebra) {}
  // An index scalar as a form. Sums, products, quotients, minima and maxima are taken apart into their operands. A sum
  // with a part beyond 32 bits is a symbol: it may be small, and products with its parts would leave 64 bits.
  Form of(ValueId v);
  Form of(const ScalarForm& form);
  const Graph& graph() const { return g_; }

 private:
  Form of(ValueId v, std::map<ValueId, Form>& known);

  const Graph& g_;
  const ExtentClasses& classes_;
  IndexAlgebra& algebra_;
};

}  // namespace fusebox
