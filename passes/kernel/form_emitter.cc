#include "passes/kernel/form_emitter.h"

#include "ir/table/error.h"

namespace fusebox {

ValueId FormEmitter::prepared(ValueId a, Form divisor, bool nonnegative) {
  const bool may = nonnegative && launch_.prepared && !builder_.constant_of(a) && !algebra_.is_constant(divisor) &&
                   !algebra_.has_loops(divisor);
  return may ? launch_.prepared(algebra_, divisor) : ValueId();
}

ValueId FormEmitter::emit_quotient(ValueId a, Form divisor, bool nonnegative) {
  const ValueId by = prepared(a, divisor, nonnegative);
  const ValueId b = emit(divisor);
  return by ? builder_.op(OpKind::kPreparedDiv, {a, b, by}, Dtype::kIndex) : builder_.floor_div(a, b, nonnegative);
}

ValueId FormEmitter::emit_remainder(ValueId a, Form divisor, bool nonnegative) {
  if (!prepared(a, divisor, nonnegative)) return builder_.floor_mod(a, emit(divisor), nonnegative);
  const ValueId q = emit_quotient(a, divisor, nonnegative);
  return builder_.sub(a, builder_.mul(q, emit(divisor)));
}

namespace {

bool is_division(AtomKind kind) {
  return kind == AtomKind::kDigit || kind == AtomKind::kQuotient || kind == AtomKind::kRemainder;
}

}  // namespace

ValueId FormEmitter::emit_atom(AtomId id) {
  const AtomView atom = algebra_.atom(id);
  const std::vector<Form>& args = atom.args;
  if (is_division(atom.kind) && launch_.value)
    if (const Form whole = algebra_.form_of(id); !algebra_.has_loops(whole))
      if (const ValueId v = launch_.value(algebra_, whole)) return v;
  switch (atom.kind) {
    case AtomKind::kSymbol: {
      // A truth is a number here: a product of two truths would be one.
      const ValueId v = symbol_(atom.id);
      return is_boolean(builder_.graph()[v].dtype) ? builder_.op(OpKind::kCast, {v}, Dtype::kIndex) : v;
    }
    case AtomKind::kLoop:
      return loop_(atom.id);
    case AtomKind::kDigit: {
      const bool nonnegative = algebra_.prove_nonneg(atom.whole);
      const ValueId v = emit_quotient(emit(atom.whole), atom.divisor, nonnegative);
      return atom.range ? emit_remainder(v, *atom.range, nonnegative) : v;
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
