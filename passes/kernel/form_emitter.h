// Turns forms of the index algebra into scalar ops, in the order of their normal form.
#pragma once

#include <functional>

#include "passes/algebra/index_algebra.h"
#include "passes/kernel/kernel_builder.h"

namespace fusebox {

class FormEmitter {
 public:
  using Lookup = std::function<ValueId(int)>;
  FormEmitter(IndexAlgebra& algebra, KernelBuilder& builder, Lookup symbol, Lookup loop)
      : algebra_(algebra), builder_(builder), symbol_(std::move(symbol)), loop_(std::move(loop)) {}

  ValueId emit(Form form);

 private:
  ValueId emit_atom(AtomId id);
  ValueId emit_product(const TermView& term, int64_t coefficient);

  IndexAlgebra& algebra_;
  KernelBuilder& builder_;
  Lookup symbol_;
  Lookup loop_;
};

}  // namespace fusebox
