#include "ir/build/one_place.h"

#include <optional>

#include "ir/scalar/scalar_form.h"

namespace fusebox {
namespace {

// A bound that is clamped by a constant: min(inner, constant) or max(inner, constant).
struct Clamped {
  OpKind kind = OpKind::kMinimum;
  ScalarForm inner;
  int64_t constant = 0;
};

std::optional<Clamped> clamped_of(const Graph& g, const ScalarForm::Term& term) {
  if (term.factors.size() != 1 || !g[term.factors[0]].def) return std::nullopt;
  const Op& op = g[g[term.factors[0]].def];
  if (op.kind != OpKind::kMinimum && op.kind != OpKind::kMaximum) return std::nullopt;
  for (const size_t i : {0, 1})
    if (const auto constant = constant_integer(g, op.operands[i]))
      return Clamped{op.kind, form_of(g, op.operands[1 - i]), *constant};
  return std::nullopt;
}

// Whether a is b + 1.
bool is_next(const ScalarForm& a, const ScalarForm& b) {
  const auto difference = add(a, b, -1);
  return difference && difference->equals(ScalarForm::of(1));
}

// Both bounds are clamped alike.
bool is_step(const Clamped& stop, const Clamped& start) {
  if (stop.kind != start.kind) return false;
  return stop.kind == OpKind::kMinimum ? stop.constant == start.constant + 1 && stop.inner.equals(start.inner)
                                       : stop.constant == start.constant && is_next(stop.inner, start.inner);
}

}  // namespace

bool is_one_place(const Graph& g, DomainId axis) {
  if (g[axis].iter_type != IterType::kIteration) return false;
  const auto length = size_form(g, axis);
  if (!length) return false;
  std::optional<Clamped> stop, start;
  for (const ScalarForm::Term& term : length->terms) {
    if (term.coefficient == 1 && !stop) stop = clamped_of(g, term);
    if (term.coefficient != -1 || start) continue;
    start = clamped_of(g, term);
    // The stop is the whole extent, and the start is counted from it.
    if (start && start->kind == OpKind::kMaximum)
      if (const auto whole = add(*length, ScalarForm::atom(term.factors[0])); whole && is_next(*whole, start->inner))
        return true;
  }
  if (!stop || length->constant != 0) return false;
  if (length->terms.size() == 1) return stop->kind == OpKind::kMinimum && stop->constant == 1;
  return length->terms.size() == 2 && start && is_step(*stop, *start);
}

}  // namespace fusebox
