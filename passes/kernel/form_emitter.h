// Turns forms of the index algebra into scalar ops, in the order of their normal form.
//
// A division costs about twenty instructions. With `LaunchScalars` a kernel leaves divisions to its launch: a quotient
// that has one value in the whole launch becomes a parameter, and so does what a division by such a value needs.
//
//   i / n5, i % n5   →   %q = prepared_div %i, %n5, %d     %r = i - q*n5     with the parameter %d = prepare_div %n5
#pragma once

#include <functional>

#include "passes/algebra/index_algebra.h"
#include "passes/kernel/kernel_builder.h"

namespace fusebox {

// The scalars that a kernel may ask its launch to compute, once for all threads. Each gives a parameter, or none if the launch
// cannot compute the form.
struct LaunchScalars {
  using Make = std::function<ValueId(IndexAlgebra&, Form)>;
  Make value;     // the value of a form
  Make prepared;  // what prepare_div makes of it
};

class FormEmitter {
 public:
  using Lookup = std::function<ValueId(int)>;
  FormEmitter(IndexAlgebra& algebra, KernelBuilder& builder, Lookup symbol, Lookup loop, LaunchScalars launch = {})
      : algebra_(algebra),
        builder_(builder),
        symbol_(std::move(symbol)),
        loop_(std::move(loop)),
        launch_(std::move(launch)) {}

  ValueId emit(Form form);

 private:
  ValueId emit_atom(AtomId id);
  ValueId emit_quotient(ValueId a, Form divisor, bool nonnegative);
  ValueId emit_remainder(ValueId a, Form divisor, bool nonnegative);
  // The parameter for a division by this form, or none.
  ValueId prepared(ValueId a, Form divisor, bool nonnegative);
  ValueId emit_product(const TermView& term, int64_t coefficient);

  IndexAlgebra& algebra_;
  KernelBuilder& builder_;
  Lookup symbol_;
  Lookup loop_;
  LaunchScalars launch_;
};

}  // namespace fusebox
