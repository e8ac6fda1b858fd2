#include "ir/scalar/scalar_form.h"

#include <algorithm>
#include <cmath>

namespace fusebox {
namespace {

constexpr size_t kMaxTerms = 16;
constexpr size_t kMaxFactors = 8;
constexpr int kMaxVisits = 64;  // the scalars that one form looks through

void add_term(ScalarForm& form, const ScalarForm::Term& term) {
  for (size_t i = 0; i < form.terms.size(); ++i) {
    if (form.terms[i].key != term.key) continue;
    form.terms[i].coefficient += term.coefficient;
    if (form.terms[i].coefficient == 0) form.terms.erase(form.terms.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  form.terms.push_back(term);
}

std::optional<int64_t> product(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

bool small(int64_t v) { return v > -(int64_t{1} << 62) && v < (int64_t{1} << 62); }

ScalarForm form_within(const Graph& g, ValueId v, int& visits) {
  if (const auto c = constant_integer(g, v)) return small(*c) ? ScalarForm::of(*c) : ScalarForm::atom(v);
  const Value& value = g[v];
  if (!value.def || value.dtype != Dtype::kIndex || --visits < 0) return ScalarForm::atom(v);
  const Op& op = g[value.def];
  const bool sum = op.kind == OpKind::kAdd || op.kind == OpKind::kSub;
  if (op.operands.size() != 2 || (!sum && op.kind != OpKind::kMul)) return ScalarForm::atom(v);
  for (ValueId o : op.operands)
    if (g[o].kind != ValueKind::kScalar || !is_integer(g[o].dtype)) return ScalarForm::atom(v);
  const ScalarForm a = form_within(g, op.operands[0], visits), b = form_within(g, op.operands[1], visits);
  const auto result = sum ? add(a, b, op.kind == OpKind::kSub ? -1 : 1) : mul(a, b);
  return result ? *result : ScalarForm::atom(v);
}

}  // namespace

std::optional<ValueId> ScalarForm::as_atom() const {
  if (constant == 0 && terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1)
    return terms[0].factors[0];
  return std::nullopt;
}

bool ScalarForm::equals(const ScalarForm& other) const {
  if (constant != other.constant || terms.size() != other.terms.size()) return false;
  return std::all_of(terms.begin(), terms.end(), [&](const Term& t) {
    return std::any_of(other.terms.begin(), other.terms.end(),
                       [&](const Term& o) { return o.coefficient == t.coefficient && o.key == t.key; });
  });
}

std::optional<ScalarForm> add(const ScalarForm& a, const ScalarForm& b, int64_t times_b) {
  ScalarForm result = a;
  const auto scaled = product(b.constant, times_b);
  if (!scaled || !small(*scaled) || !small(result.constant + *scaled)) return std::nullopt;
  result.constant += *scaled;
  for (const auto& term : b.terms) {
    ScalarForm::Term t = term;
    const auto c = product(t.coefficient, times_b);
    if (!c || !small(*c)) return std::nullopt;
    t.coefficient = *c;
    add_term(result, t);
  }
  if (result.terms.size() > kMaxTerms) return std::nullopt;
  for (const auto& t : result.terms)
    if (!small(t.coefficient)) return std::nullopt;
  return result;
}

std::optional<ScalarForm> mul(const ScalarForm& a, const ScalarForm& b) {
  ScalarForm result;
  const auto accumulate = [&](int64_t x, int64_t y, const ScalarForm::Term* s, const ScalarForm::Term* t) {
    const auto c = product(x, y);
    if (!c || !small(*c)) return false;
    if (*c == 0) return true;
    ScalarForm::Term term;
    term.coefficient = *c;
    for (const auto* part : {s, t})
      if (part) term.factors.insert(term.factors.end(), part->factors.begin(), part->factors.end());
    if (term.factors.size() > kMaxFactors) return false;
    term.key = term.factors;
    std::sort(term.key.begin(), term.key.end());
    if (term.key.empty()) {
      result.constant += *c;
      return small(result.constant);
    }
    add_term(result, term);
    return result.terms.size() <= kMaxTerms;
  };
  if (!accumulate(a.constant, b.constant, nullptr, nullptr)) return std::nullopt;
  for (const auto& t : a.terms)
    if (!accumulate(t.coefficient, b.constant, &t, nullptr)) return std::nullopt;
  for (const auto& t : b.terms)
    if (!accumulate(a.constant, t.coefficient, nullptr, &t)) return std::nullopt;
  for (const auto& s : a.terms)
    for (const auto& t : b.terms)
      if (!accumulate(s.coefficient, t.coefficient, &s, &t)) return std::nullopt;
  return result;
}

std::optional<ScalarForm> divide_exactly(const ScalarForm& a, const ScalarForm& b) {
  ScalarForm::Term divisor;
  if (b.is_constant())
    divisor.coefficient = b.constant;
  else if (b.constant == 0 && b.terms.size() == 1)
    divisor = b.terms[0];
  if (divisor.coefficient == 0) return std::nullopt;
  ScalarForm result;
  if (a.constant != 0) {
    if (!divisor.key.empty() || a.constant % divisor.coefficient != 0) return std::nullopt;
    result.constant = a.constant / divisor.coefficient;
  }
  for (const auto& term : a.terms) {
    if (term.coefficient % divisor.coefficient != 0) return std::nullopt;
    ScalarForm::Term quotient = term;
    quotient.coefficient /= divisor.coefficient;
    for (ValueId f : divisor.factors) {
      const auto it = std::find(quotient.factors.begin(), quotient.factors.end(), f);
      if (it == quotient.factors.end()) return std::nullopt;
      quotient.factors.erase(it);
    }
    quotient.key = quotient.factors;
    std::sort(quotient.key.begin(), quotient.key.end());
    if (quotient.key.empty())
      result.constant += quotient.coefficient;
    else
      add_term(result, quotient);
  }
  return result;
}

ScalarForm form_of(const Graph& g, ValueId v) {
  int visits = kMaxVisits;
  return form_within(g, v, visits);
}

namespace {

constexpr int kMaxDepth = 8;  // nesting of quotients, minima and maxima

bool is_size_sum_within(const Graph& g, const ScalarForm& form, int depth);

bool is_size_atom(const Graph& g, ValueId v, int depth) {
  if (!g[v].def || depth == 0) return false;
  const Op& op = g[g[v].def];
  if (op.kind == OpKind::kSize) return true;
  const auto is_sum = [&](ValueId o) { return is_size_sum_within(g, form_of(g, o), depth - 1); };
  switch (op.kind) {
    case OpKind::kFloorDiv:
    case OpKind::kFloorMod:
    case OpKind::kCeilDiv:
    case OpKind::kMinimum:
      return is_sum(op.operands[0]) && is_sum(op.operands[1]);
    case OpKind::kMaximum:
      return is_sum(op.operands[0]) || is_sum(op.operands[1]);
    default:  // any other: may be negative
      return false;
  }
}

bool is_size_sum_within(const Graph& g, const ScalarForm& form, int depth) {
  return form.constant >= 0 && std::all_of(form.terms.begin(), form.terms.end(), [&](const ScalarForm::Term& t) {
           return t.coefficient > 0 &&
                  std::all_of(t.factors.begin(), t.factors.end(), [&](ValueId v) { return is_size_atom(g, v, depth); });
         });
}

}  // namespace

bool is_size_sum(const Graph& g, const ScalarForm& form) { return is_size_sum_within(g, form, kMaxDepth); }
bool is_size_sum(const Graph& g, ValueId v) { return is_size_sum(g, form_of(g, v)); }

namespace {

// The value of a form if each atom is a pseudo-random number made from its id. Equal forms have equal values, and other
// forms almost never do. Computing it from a scalar's ops needs no memory, unlike the form itself.
struct Worth {
  uint64_t number = 0;
  // Upper bounds: the number of terms, the factors of one term, the sum of the coefficients.
  size_t terms = 0, factors = 0;
  double coefficients = 0;

  bool is_within_limits() const {
    return terms <= kMaxTerms && factors <= kMaxFactors && coefficients < static_cast<double>(int64_t{1} << 61);
  }
};

uint64_t worth_of_atom(ValueId v) {
  uint64_t x = (uint64_t{v.index} + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 29);
}

uint64_t worth_of(const ScalarForm& form) {
  uint64_t sum = static_cast<uint64_t>(form.constant);
  for (const ScalarForm::Term& t : form.terms) {
    uint64_t product = static_cast<uint64_t>(t.coefficient);
    for (ValueId v : t.factors) product *= worth_of_atom(v);
    sum += product;
  }
  return sum;
}

// The worth of form_within(g, v, visits), found by the same walk. Returns nothing if the form may be too large.
std::optional<Worth> worth_within(const Graph& g, ValueId v, int& visits) {
  const Worth atom{worth_of_atom(v), 1, 1, 1};
  if (const auto c = constant_integer(g, v))
    return small(*c) ? Worth{static_cast<uint64_t>(*c), 0, 0, std::fabs(static_cast<double>(*c))} : atom;
  const Value& value = g[v];
  if (!value.def || value.dtype != Dtype::kIndex || --visits < 0) return atom;
  const Op& op = g[value.def];
  const bool sum = op.kind == OpKind::kAdd || op.kind == OpKind::kSub;
  if (op.operands.size() != 2 || (!sum && op.kind != OpKind::kMul)) return atom;
  for (ValueId o : op.operands)
    if (g[o].kind != ValueKind::kScalar || !is_integer(g[o].dtype)) return atom;
  const auto a = worth_within(g, op.operands[0], visits);
  const auto b = a ? worth_within(g, op.operands[1], visits) : std::nullopt;
  if (!b) return std::nullopt;
  Worth result;
  if (sum)
    result = {op.kind == OpKind::kAdd ? a->number + b->number : a->number - b->number, a->terms + b->terms,
              std::max(a->factors, b->factors), a->coefficients + b->coefficients};
  else
    result = {a->number * b->number, (a->terms + 1) * (b->terms + 1) - 1, a->factors + b->factors,
              a->coefficients * b->coefficients};
  return result.is_within_limits() ? std::optional(result) : std::nullopt;
}

// The first scalar before the place that has this form, or nothing.
std::optional<ValueId> find_equal(const Graph& g, scalar::Place place, const ScalarForm& form) {
  const uint64_t wanted = worth_of(form);
  for (OpId id : g[place.region].ops) {
    if (place.before && id == place.before) break;
    const Op& op = g[id];
    if (op.kind != OpKind::kAdd && op.kind != OpKind::kSub && op.kind != OpKind::kMul) continue;
    const ValueId v = op.results[0];
    if (g[v].kind != ValueKind::kScalar || g[v].dtype != Dtype::kIndex) continue;
    int visits = kMaxVisits;
    const auto worth = worth_within(g, v, visits);
    if ((!worth || worth->number == wanted) && form_of(g, v).equals(form)) return v;
  }
  return std::nullopt;
}

}  // namespace

ValueId emit_form(Graph& g, scalar::Place place, const ScalarForm& form) {
  if (form.is_constant()) return constant_index(g, form.constant);
  if (const auto atom = form.as_atom(); atom && g[*atom].dtype == Dtype::kIndex) return *atom;
  if (const auto found = find_equal(g, place, form)) return *found;
  const auto emit_product = [&](const ScalarForm::Term& term, int64_t coefficient) {
    ValueId v = scalar::cast(g, place, term.factors[0], Dtype::kIndex);
    for (size_t i = 1; i < term.factors.size(); ++i)
      v = scalar::mul(g, place, v, scalar::cast(g, place, term.factors[i], Dtype::kIndex));
    return scalar::mul(g, place, v, constant_index(g, coefficient));
  };
  // Positive terms come first and negative terms are subtracted, so that `n − k` is one op.
  ValueId sum;
  for (const auto& term : form.terms) {
    if (term.coefficient < 0) continue;
    const ValueId v = emit_product(term, term.coefficient);
    sum = sum ? scalar::add(g, place, sum, v) : v;
  }
  if (form.constant > 0 || !sum) {
    const ValueId c = constant_index(g, form.constant);
    sum = sum ? scalar::add(g, place, sum, c) : c;
  }
  for (const auto& term : form.terms)
    if (term.coefficient < 0) sum = scalar::sub(g, place, sum, emit_product(term, -term.coefficient));
  if (form.constant < 0 && !g.is_constant(sum)) {
    // Subtracts a negative constant, unless the sum started with it.
    bool started = true;
    for (const auto& term : form.terms) started = started && term.coefficient < 0;
    if (!started) sum = scalar::sub(g, place, sum, constant_index(g, -form.constant));
  }
  return sum;
}

}  // namespace fusebox
