#include "passes/kernel/form_emitter.h"

#include "ir/table/error.h"

namespace fusebox {

ValueId FormEmitter::emit_atom(AtomId id) {
  const AtomView atom = algebra_.atom(id);
  const std::vector<Form>& args = atom.args;
  switch (atom.kind) {
    case AtomKind::kSymbol:
      return symbol_(atom.id);
    case AtomKind::kLoop:
      return loop_(atom.id);
    case AtomKind::kDigit: {
      const bool nonnegative = algebra_.prove_nonneg(atom.whole);
      ValueId v = builder_.floor_div(emit(atom.whole), emit(atom.divisor), nonnegative);
      if (atom.range) v = builder_.floor_mod(v, emit(*atom.range), nonnegative);
      return v;
    }
    case AtomKind::kNamed:
      return emit(args[0]);
    case AtomKind::kXor: {
      ValueId v = emit(args[0]);
      for (size_t i = 1; i < args.size(); ++i) v = builder_.op(OpKind::kBitwiseXor, {v, emit(args[i])}, Dtype::kIndex);
      return v;
    }
    case AtomKind::kQuotient: {
      const ValueId a = emit(args[0]);
      return builder_.floor_div(a, emit(args[1]), false);
    }
    case AtomKind::kRemainder: {
      const ValueId a = emit(args[0]);
      return builder_.floor_mod(a, emit(args[1]), false);
    }
    case AtomKind::kMin: {
      const ValueId a = emit(args[0]);
      return builder_.minimum(a, emit(args[1]));
    }
    case AtomKind::kMax: {
      const ValueId a = emit(args[0]);
      return builder_.maximum(a, emit(args[1]));
    }
    case AtomKind::kSum: {
      const ValueId a = emit(args[0]);
      return builder_.add(a, emit(args[1]));
    }
    case AtomKind::kProduct: {
      const ValueId a = emit(args[0]);
      return builder_.mul(a, emit(args[1]));
    }
  }
  throw Error(ErrorCode::kInternal, "an atom of unknown kind");
}

ValueId FormEmitter::emit_product(const TermView& term, int64_t coefficient) {
  ValueId product;
  for (AtomId f : term.factors) {
    const ValueId v = emit_atom(f);
    product = product ? builder_.mul(product, v) : v;
  }
  if (!product) return builder_.index(coefficient);
  return builder_.mul(product, builder_.index(coefficient));
}

ValueId FormEmitter::emit(Form form) {
  ValueId sum;
  const std::vector<TermView> terms = algebra_.terms(form);
  // Positive terms come first, so that a negative term becomes a subtraction.
  for (const bool negative : {false, true})
    for (const TermView& term : terms) {
      if ((term.coefficient < 0) != negative) continue;
      const bool subtract = negative && sum && term.coefficient != INT64_MIN;
      const ValueId v = emit_product(term, subtract ? -term.coefficient : term.coefficient);
      sum = !sum ? v : subtract ? builder_.sub(sum, v) : builder_.add(sum, v);
    }
  const int64_t constant = algebra_.constant_part(form);
  if (!sum) return builder_.index(constant);
  return builder_.add(sum, builder_.index(constant));
}

}  // namespace fusebox
