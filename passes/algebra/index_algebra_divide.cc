// Divides a form by E >= 1, a product of symbols and a constant: x = E·quotient + remainder with 0 <= remainder < E.
//
// Each step moves whole multiples of E from the rest to the quotient and keeps x = E·quotient + rest. The division ends
// as soon as the rest provably lies in one interval [j·E, (j+1)·E). If that cannot be shown, the rest becomes an opaque
// quotient and remainder: digits of the rest.
//
//   (4·l + 2) div 12, l in [0, 24): 4·l is cut at 12/4 into 12·(l div 3) + 4·(l mod 3). The first part goes to the
//   quotient. 4·(l mod 3) + 2 lies in [2, 10]. So the quotient is l / 3 and the remainder 4·(l % 3) + 2.
//
// An opaque division has two spellings. The short one, for code, keeps an unresolved part as it was given. The
// canonical one, for comparing forms, also cuts digits and reduces coefficients.
//
//   short: (l + k) div 4      canonical: l div 4 + (l mod 4 + k) div 4
#include <algorithm>
#include <array>
#include <numeric>

#include "passes/algebra/index_algebra.h"

namespace fusebox {
namespace {

constexpr int kMaxDivisionDepth = 8;
constexpr size_t kMaxCandidates = 8;
constexpr int64_t kLargestFlattened = int64_t{1} << 28;

// The residue of smallest absolute value; the positive one if there are two.
int64_t balanced_residue(int64_t value, int64_t modulus) {
  const int64_t residue = floor_remainder(value, modulus);
  return residue > modulus / 2 ? residue - modulus : residue;
}

}  // namespace

std::optional<Coefficient> IndexAlgebra::exact_quotient(Coefficient a, Coefficient b) {
  if (b.factor == 0 || (b.factor == -1 && a.factor == kMinusInfinity) || a.factor % b.factor != 0) return std::nullopt;
  const auto symbols = store_.quotient(a.symbols, b.symbols);
  if (!symbols) return std::nullopt;
  return Coefficient{a.factor / b.factor, *symbols};
}

Coefficient IndexAlgebra::common_divisor(Coefficient a, Coefficient b) {
  const int64_t factor = a.factor == kMinusInfinity || b.factor == kMinusInfinity ? 1 : std::gcd(a.factor, b.factor);
  return {factor, store_.common(a.symbols, b.symbols)};
}

std::optional<Coefficient> IndexAlgebra::product(Coefficient a, Coefficient b) {
  Coefficient result;
  if (__builtin_mul_overflow(a.factor, b.factor, &result.factor)) return std::nullopt;
  result.symbols = store_.product(a.symbols, b.symbols);
  if (result.symbols == kNoMonomial) return std::nullopt;
  return result;
}

bool IndexAlgebra::is_positive(Coefficient value) const {
  if (value.factor <= 0) return false;
  for (const AtomId atom : store_.factors(value.symbols)) {
    if (store_.atom(atom).bounds.lo < 1) return false;
  }
  return true;
}

IndexAlgebra::TermParts IndexAlgebra::split(const RawTerm& term) {
  const MonomialRecord& monomial = store_.monomial(term.monomial);
  TermParts parts;
  parts.coefficient = {term.factor, monomial.symbol_part};
  parts.rest = monomial.loop_part;
  parts.cut_coefficient = parts.coefficient;
  if (monomial.loop_part != kOne) {
    const auto factors = store_.factors(monomial.loop_part);
    if (factors.size() == 1) parts.cut_atom = factors[0];
  } else if (monomial.count == 1) {
    // A whole symbol is not cut: that would replace one opaque part by two.
    const AtomId atom = store_.factors(term.monomial)[0];
    const AtomKind kind = store_.atom(atom).kind;
    if (kind != AtomKind::kSymbol && kind != AtomKind::kNamed) {
      parts.cut_atom = atom;
      parts.cut_coefficient = {term.factor, kOne};
    }
  }
  return parts;
}

DivMod IndexAlgebra::divide(Form value, Form divisor) {
  value = resolve(value);
  divisor = resolve(divisor);
  if (divisor == Form{} || value == Form{}) return {};
  const uint64_t key = (uint64_t{value.id} << 32 | divisor.id) + (canonical_ ? uint64_t{1} << 63 : 0);
  const auto hash = static_cast<uint32_t>(key * 0x9e3779b97f4a7c15 >> 32);
  const auto found = division_table_.find(hash, [&](uint32_t id) {
    const CachedDivision& known = divisions_[id];
    return known.value == value && known.divisor == divisor && known.canonical == canonical_;
  });
  if (found) return divisions_[*found].result;

  DivMod result;
  const Form unit = has_loops(divisor) ? divisor : symbol_of(divisor);
  auto e = has_loops(divisor) ? std::nullopt : store_.as_coefficient(unit);
  Form dividend = value;
  if (unit != divisor && value == divisor) dividend = unit;
  // Division by -E negates the quotient and keeps the remainder.
  const bool negative = e && e->factor < 0 && e->factor != kMinusInfinity;
  if (negative) e->factor = -e->factor;
  bool done = false;
  if (e && is_positive(*e) && depth_ < kMaxDivisionDepth) {
    ++depth_;
    const bool outer_left_opaque = left_opaque_;
    Poly poly;
    Poly quotient;
    Poly remainder;
    store_.load(poly, dividend);
    divide(poly, *e, quotient, remainder, 0);
    left_opaque_ = outer_left_opaque;
    if (!quotient.failed) normalize(quotient);
    if (!remainder.failed) normalize(remainder);
    if (!quotient.failed && !remainder.failed) {
      result = {store_.intern(quotient), store_.intern(remainder)};
      if (negative) result.quotient = neg(result.quotient);
      done = true;
    }
    --depth_;
  }
  // If the divisor may be 0, two laws still hold: x mod E mod E is x mod E, and 0 <= x < E implies E > 0.
  if (!done && e) {
    const auto single = store_.as_coefficient(value);
    const auto factors = single && single->factor == 1 ? store_.factors(single->symbols) : std::span<const AtomId>{};
    const bool same = factors.size() == 1 && store_.atom(factors[0]).kind == AtomKind::kRemainder &&
                      store_.args(factors[0])[1] == unit;
    if (same || (e->factor > 0 && nonneg(value) && nonneg(sub(sub(unit, value), constant(1))))) {
      result = {Form{}, value};
      done = true;
    }
  }
  if (!done) {
    const Interval x = store_.form(value).bounds;
    const Interval d = store_.form(unit).bounds;
    const bool both_nonneg = x.lo >= 0 && d.lo >= 0;
    const Form args[] = {value, unit};
    result.quotient = opaque(AtomKind::kQuotient, args, both_nonneg ? Interval{0, x.hi} : Interval{});
    const int64_t last = d.lo < 0 || d.hi == kInfinity ? kInfinity : std::max<int64_t>(0, d.hi - 1);
    result.remainder = opaque(AtomKind::kRemainder, args, {0, both_nonneg ? std::min(last, x.hi) : last});
  }
  division_table_.insert(hash, static_cast<uint32_t>(divisions_.size()));
  divisions_.push_back({value, divisor, canonical_, result});
  return result;
}

void IndexAlgebra::divide(const Poly& value, Coefficient e, Poly& quotient, Poly& remainder, int depth) {
  quotient.clear();
  Poly rest = value;
  normalize(rest);
  pull_multiples(rest, e, quotient);
  if (expand_named(rest, e)) {
    normalize(rest);
    pull_multiples(rest, e, quotient);
  }
  if (settle(rest, e, quotient)) {
    remainder = rest;
    return;
  }
  Poly cut_rest = rest;
  Poly cut_quotient = quotient;
  const bool cut = cut_digits(cut_rest, e, cut_quotient);
  if (cut && settle(cut_rest, e, cut_quotient)) {
    quotient = cut_quotient;
    remainder = cut_rest;
    return;
  }
  const bool failed = rest.failed || quotient.failed || cut_rest.failed || cut_quotient.failed;
  if (failed || depth >= kMaxDivisionDepth) return leave_opaque(rest, e, quotient, remainder);
  if (two_valued(rest, e, quotient, remainder, depth)) return;
  if (flatten_quotient(rest, e, quotient, remainder, depth)) return;
  if (canonical_ && cut && two_valued(cut_rest, e, cut_quotient, remainder, depth)) {
    quotient = cut_quotient;
    return;
  }
  if (!canonical_ && split_common(rest, e, quotient, remainder, depth)) return;
  if ((canonical_ || cut) && split_common(cut_rest, e, cut_quotient, remainder, depth)) {
    quotient = cut_quotient;
    return;
  }
  // The next steps let congruent rests meet, but with longer spellings. Their result is kept if it contains nothing
  // opaque, or for comparing forms.
  const bool expanded = expand_remainders(cut_rest, e, cut_quotient);
  const bool reduced = reduce_coefficients(cut_rest, e, cut_quotient);
  if (expanded || reduced) {
    const bool before = left_opaque_;
    left_opaque_ = false;
    Poly more;
    divide(cut_rest, e, more, remainder, depth + 1);
    const bool resolved = !left_opaque_;
    left_opaque_ = before || !resolved;
    if (canonical_ || resolved) {
      store_.add(cut_quotient, more);
      quotient = cut_quotient;
      return;
    }
  }
  if (!canonical_) return leave_opaque(rest, e, quotient, remainder);
  quotient = cut_quotient;
  leave_opaque(cut_rest, e, quotient, remainder);
}

// Moves terms whose coefficient is a multiple of E to the quotient, and the multiple of E in the constant.
void IndexAlgebra::pull_multiples(Poly& rest, Coefficient e, Poly& quotient) {
  Poly kept;
  kept.failed = rest.failed;
  for (const RawTerm& term : rest.terms()) {
    const TermParts parts = split(term);
    if (const auto q = exact_quotient(parts.coefficient, e)) {
      store_.add_product(quotient, *q, parts.rest);
    } else {
      kept.storage[kept.count++] = term;
    }
  }
  kept.constant = rest.constant;
  if (e.symbols == kOne) {
    quotient.add_constant(floor_quotient(rest.constant, e.factor));
    kept.constant = floor_remainder(rest.constant, e.factor);
  }
  rest = kept;
}

// Whether the rest lies in one interval [j·E, (j+1)·E). If so, j moves to the quotient and the rest becomes the
// remainder.
bool IndexAlgebra::settle(Poly& rest, Coefficient e, Poly& quotient) {
  if (rest.failed) return false;
  const Interval bounds = store_.bounds(rest);
  if (e.symbols == kOne) {
    if (bounds.lo == kMinusInfinity) return false;
    const int64_t j = floor_quotient(bounds.lo, e.factor);
    if (bounds.hi != kInfinity) {
      const bool may_be_modulus = bounds.hi == static_cast<__int128>(j) * e.factor + e.factor;
      if (floor_quotient(bounds.hi, e.factor) != j && !(may_be_modulus && defects_.has(Defect::kAlgebraModulusDropped)))
        return false;
      quotient.add_constant(j);
      int64_t moved = 0;
      rest.failed |= __builtin_mul_overflow(j, -e.factor, &moved);
      rest.add_constant(moved);
      return true;
    }
    if (bounds.lo < 0 || bounds.lo >= e.factor) return false;
  }
  if (rest.is_constant() && rest.constant == 0) return true;
  const Form value = store_.intern(rest);
  const Form unit = store_.intern(e);
  if (nonneg(value)) return nonneg(sub(sub(unit, value), constant(1)));
  if (bounds.lo >= 0 || !nonneg(sub(constant(-1), value)) || !nonneg(add(value, unit))) return false;
  quotient.add_constant(-1);
  rest.add_term(e.factor, e.symbols);
  return true;
}

// Replaces a named factor that E lacks by the form that it names: division cannot use the name.
bool IndexAlgebra::expand_named(Poly& rest, Coefficient e) {
  bool any = false;
  for (uint32_t i = 0; i < rest.count; ++i) {
    const RawTerm term = rest.storage[i];
    if (!store_.monomial(term.monomial).named) continue;
    for (const AtomId atom : store_.factors(term.monomial)) {
      if (store_.atom(atom).kind != AtomKind::kNamed) continue;
      const auto e_factors = store_.factors(e.symbols);
      if (std::find(e_factors.begin(), e_factors.end(), atom) != e_factors.end()) continue;
      rest.add_term(-term.factor, term.monomial);
      store_.add(rest, store_.args(atom)[0], {term.factor, *store_.quotient(term.monomial, store_.monomial_of(atom))});
      any = true;
      break;
    }
    if (any) break;
  }
  if (any && !rest.failed) expand_named(rest, e);
  return any;
}

// Handles a quotient that takes two values. Such a quotient only asks whether the rest, minus its least value, reaches
// a threshold t > 0. It is written with the least divisor that asks the same question. Equal questions then meet,
// whatever their divisors were. With divisor 1 the quotient is the rest itself.
bool IndexAlgebra::two_valued(const Poly& rest, Coefficient e, Poly& quotient, Poly& remainder, int depth) {
  const Interval bounds = store_.bounds(rest);
  if (e.symbols != kOne || bounds.lo == kMinusInfinity || bounds.hi == kInfinity) return false;
  const int64_t j = floor_quotient(bounds.lo, e.factor);
  if (floor_quotient(bounds.hi, e.factor) != j + 1) return false;
  int64_t threshold = (j + 1) * e.factor - bounds.lo;
  int64_t width = bounds.hi - bounds.lo;
  std::optional<AtomId> lifted;
  Poly value = rest;
  value.add_constant(-bounds.lo);
  // g·x reaches t exactly if x reaches ceil(t / g). x div a reaches t exactly if x reaches a·t.
  int64_t g = value.constant;
  for (const RawTerm& term : value.terms()) g = std::gcd(g, term.factor);
  value.constant /= g;
  for (RawTerm& term : value.terms()) term.factor /= g;
  threshold = (threshold + g - 1) / g;
  width /= g;
  if (value.count == 1 && value.constant == 0 && value.storage[0].factor == 1) {
    const MonomialRecord& monomial = store_.monomial(value.storage[0].monomial);
    const AtomId atom = store_.factors(value.storage[0].monomial)[0];
    const AtomRecord& record = store_.atom(atom);
    const AtomId root{record.root};
    const Interval whole = store_.atom(root).bounds;
    if (monomial.count == 1 && record.kind == AtomKind::kDigit && range_of(atom) == kNoRange &&
        record.divisor.symbols == kOne && whole.lo == 0 && whole.hi != kInfinity) {
      // No overflow: the digit reaches the threshold somewhere, so the whole value reaches the product.
      threshold *= record.divisor.factor;
      width = whole.hi;
      store_.load(value, value_of(root));
      lifted = root;
    }
  }
  const int64_t least = std::max(threshold, width - threshold + 1);
  value.add_constant(least - threshold);
  if (value.failed) return false;
  Poly more;
  if (lifted && least == threshold) {
    store_.load(more, digit(*lifted, {least, kOne}, kNoRange));
  } else if (least >= e.factor) {
    return false;
  } else if (least == 1) {
    more = value;
  } else {
    const bool before = left_opaque_;
    left_opaque_ = false;
    Poly unused;
    divide(value, {least, kOne}, more, unused, depth + 1);
    const bool resolved = !left_opaque_;
    left_opaque_ = before || !resolved;
    if (!canonical_ && !resolved) {
      left_opaque_ = before;
      return false;
    }
  }
  more.add_constant(j);
  remainder = rest;
  store_.add(remainder, more, {-e.factor, kOne});
  store_.add(quotient, more);
  return true;
}

// Cuts a digit that reaches across E, if its range allows.
bool IndexAlgebra::cut_digits(Poly& rest, Coefficient e, Poly& quotient) {
  bool any = false;
  const Poly before = rest;
  for (const RawTerm& term : before.terms()) {
    const TermParts parts = split(term);
    if (!parts.cut_atom) continue;
    const auto at = exact_quotient(e, parts.cut_coefficient);
    if (!at) continue;
    // E = coefficient × at. A negative coefficient is cut at -at and gives -1 × the high digit.
    const Coefficient size{std::abs(at->factor), at->symbols};
    const AtomId atom = *parts.cut_atom;
    const AtomId base{store_.atom(atom).root};
    const Coefficient range = range_of(atom);
    Coefficient high_range = kNoRange;
    if (range != kNoRange) {
      const auto left = exact_quotient(range, size);
      if (!left || *left == Coefficient{}) continue;
      high_range = *left;
    }
    const auto divisor = product(divisor_of(atom), size);
    if (!divisor) continue;
    const Form high = digit(base, *divisor, high_range);
    if (high == Form{}) {
      // The digit stays below the cut, perhaps by a proof that int bounds do not give.
      if (size.symbols == kOne && size.factor - 1 < store_.atom(atom).bounds.hi) {
        store_.limit(atom, size.factor - 1);
        any = true;
      }
      continue;
    }
    const Form low = digit(base, divisor_of(atom), size);
    store_.add(quotient, high, {at->factor < 0 ? -1 : 1, kOne});
    rest.add_term(-term.factor, term.monomial);
    store_.add(rest, low, parts.cut_coefficient);
    any = true;
  }
  if (any) {
    normalize(rest);
    pull_multiples(rest, e, quotient);
  }
  return any;
}

// Splits rest = g·high + low with low in [0, g), if possible.
bool IndexAlgebra::split_at(const Poly& rest, Coefficient g, Poly& high, Poly& low) {
  high.clear();
  low.clear();
  for (const RawTerm& term : rest.terms()) {
    const TermParts parts = split(term);
    if (const auto q = exact_quotient(parts.coefficient, g)) {
      store_.add_product(high, *q, parts.rest);
      continue;
    }
    bool was_cut = false;
    const auto at = parts.cut_atom ? exact_quotient(g, parts.cut_coefficient) : std::nullopt;
    if (at && at->factor > 0) {
      const AtomId atom = *parts.cut_atom;
      const AtomId base{store_.atom(atom).root};
      const Coefficient range = range_of(atom);
      const auto left = range == kNoRange ? std::optional(kNoRange) : exact_quotient(range, *at);
      const auto divisor = product(divisor_of(atom), *at);
      if (left && *left != Coefficient{} && divisor) {
        // For comparing forms, the quotient of a named form is that of the form.
        store_.add(high, canonical_ ? fused_digit(base, *divisor, *left) : digit(base, *divisor, *left));
        store_.add(low, digit(base, divisor_of(atom), *at), parts.cut_coefficient);
        was_cut = true;
      }
    }
    if (!was_cut) low.add_term(term.factor, term.monomial);
  }
  if (g.symbols != kOne) {
    low.constant = rest.constant;
    if (low.failed || high.failed) return false;
    if (low.is_constant() && low.constant == 0) return true;
    const Form value = store_.intern(low);
    return nonneg(value) && nonneg(sub(sub(store_.intern(g), value), constant(1)));
  }
  // Only one way of dividing the constant between the two can work: low gets the least part that makes it nonnegative.
  const Interval bounds = store_.bounds(low);
  if (bounds.lo == kMinusInfinity || bounds.hi == kInfinity) return false;
  int64_t least = 0;
  int64_t sum = 0;
  if (__builtin_sub_overflow(0, bounds.lo, &least) || __builtin_sub_overflow(rest.constant, least, &sum)) return false;
  const int64_t low_constant = least + floor_remainder(sum, g.factor);
  if (static_cast<__int128>(bounds.hi) + low_constant >= g.factor && !defects_.has(Defect::kAlgebraDivideDistributes))
    return false;
  int64_t high_constant = 0;
  if (__builtin_sub_overflow(rest.constant, low_constant, &high_constant)) return false;
  high.add_constant(high_constant / g.factor);
  low.add_constant(low_constant);
  return !low.failed && !high.failed;
}

// Looks for a common divisor g of E and of some coefficients such that the other terms lie in [0, g). The other terms
// go to the remainder, g is divided out, and the quotient is high div (E/g).
bool IndexAlgebra::split_common(const Poly& rest, Coefficient e, Poly& quotient, Poly& remainder, int depth) {
  std::array<Coefficient, kMaxCandidates> candidates;
  size_t count = 0;
  const auto consider = [&](Coefficient g) {
    if (g == Coefficient{} || g == e || g.factor <= 0 || count == kMaxCandidates) return;
    if (std::find(candidates.begin(), candidates.begin() + count, g) == candidates.begin() + count)
      candidates[count++] = g;
  };
  for (const RawTerm& term : rest.terms()) {
    const TermParts parts = split(term);
    consider(common_divisor(e, parts.coefficient));
    if (!parts.cut_atom || parts.cut_coefficient.factor < 0) continue;
    const auto at = exact_quotient(e, parts.cut_coefficient);
    if (!at || range_of(*parts.cut_atom) == kNoRange) continue;
    if (const auto g = product(parts.cut_coefficient, common_divisor(*at, range_of(*parts.cut_atom)))) consider(*g);
  }
  if (rest.constant != 0) consider(common_divisor(e, {rest.constant, kOne}));
  // The largest comes first, because it leaves least to divide. Equal candidates keep their order.
  const auto larger = [&](const Coefficient& a, const Coefficient& b) {
    const auto a_degree = store_.monomial(a.symbols).count;
    const auto b_degree = store_.monomial(b.symbols).count;
    return a_degree != b_degree ? a_degree > b_degree : a.factor > b.factor;
  };
  for (size_t i = 1; i < count; ++i) {
    for (size_t j = i; j > 0 && larger(candidates[j], candidates[j - 1]); --j)
      std::swap(candidates[j], candidates[j - 1]);
  }
  for (size_t i = 0; i < count; ++i) {
    Poly high;
    Poly low;
    if (!split_at(rest, candidates[i], high, low)) continue;
    Poly high_quotient;
    divide(high, *exact_quotient(e, candidates[i]), high_quotient, remainder, depth + 1);
    store_.add(quotient, high_quotient);
    store_.add(low, remainder, candidates[i]);
    remainder = low;
    return true;
  }
  return false;
}

// (x div a + w) div E is (x + a·w) div (a·E). Its remainder is (x + a·w) mod (a·E) div a.
bool IndexAlgebra::flatten_quotient(const Poly& rest, Coefficient e, Poly& quotient, Poly& remainder, int depth) {
  if (rest.failed) return false;
  for (const RawTerm& term : rest.terms()) {
    if (term.factor != 1 || store_.monomial(term.monomial).count != 1) continue;
    const AtomId atom = store_.factors(term.monomial)[0];
    if (store_.atom(atom).kind != AtomKind::kDigit || range_of(atom) != kNoRange) continue;
    const AtomId base{store_.atom(atom).root};
    const AtomKind base_kind = store_.atom(base).kind;
    if (base_kind != AtomKind::kNamed && base_kind != AtomKind::kSymbol) continue;
    const Coefficient a = store_.atom(atom).divisor;
    const auto divisor = product(a, e);
    if (!divisor) continue;
    Poly others = rest;
    others.add_term(-1, term.monomial);
    // Code that multiplies by a large divisor may leave 64 bits on the way.
    if (!canonical_ && a.factor > kLargestFlattened && !(others.is_constant() && others.constant == 0)) continue;
    Poly sum;
    store_.load(sum, value_of(base));
    store_.add(sum, others, a);
    if (sum.failed) continue;
    Poly more;
    Poly inner;
    divide(sum, *divisor, more, inner, depth + 1);
    if (more.failed || inner.failed) continue;
    Poly within;
    divide(inner, a, remainder, within, depth + 1);
    store_.add(quotient, more);
    return true;
  }
  return false;
}

// Modulo E, c·(x mod r) equals c·x if E divides c·r, because the part taken off x is then a multiple of E. So a
// remainder of a remainder meets the terms that it was made from.
bool IndexAlgebra::expand_remainders(Poly& rest, Coefficient e, Poly& quotient) {
  bool any = false;
  const Poly before = rest;
  for (const RawTerm& term : before.terms()) {
    const TermParts parts = split(term);
    if (!parts.cut_atom) continue;
    const AtomId atom = *parts.cut_atom;
    const Coefficient range = range_of(atom);
    const AtomId base{store_.atom(atom).root};
    if (range == kNoRange || divisor_of(atom) != Coefficient{} || store_.atom(base).kind != AtomKind::kNamed) continue;
    const auto taken = product(parts.cut_coefficient, range);
    const auto multiple = taken ? exact_quotient(*taken, e) : std::nullopt;
    if (!multiple) continue;
    rest.add_term(-term.factor, term.monomial);
    store_.add(rest, store_.args(base)[0], parts.cut_coefficient);
    store_.add(quotient, fused_digit(base, range, kNoRange), {-multiple->factor, multiple->symbols});
    any = true;
  }
  if (any) normalize(rest);
  return any;
}

// Replaces coefficients by their residues of least absolute value modulo E, so that congruent rests have one key.
bool IndexAlgebra::reduce_coefficients(Poly& rest, Coefficient e, Poly& quotient) {
  bool any = false;
  const Poly before = rest;
  for (const RawTerm& term : before.terms()) {
    const TermParts parts = split(term);
    const auto symbols = store_.quotient(parts.coefficient.symbols, e.symbols);
    if (!symbols) continue;
    const int64_t residue = balanced_residue(term.factor, e.factor);
    if (residue == term.factor) continue;
    // The differences fit unless the factor is the least integer; such a term stays as it is.
    int64_t taken = 0, change = 0;
    if (__builtin_sub_overflow(term.factor, residue, &taken) || __builtin_sub_overflow(residue, term.factor, &change))
      continue;
    rest.add_term(change, term.monomial);
    store_.add_product(quotient, {taken / e.factor, *symbols}, parts.rest);
    any = true;
  }
  return any;
}

void IndexAlgebra::leave_opaque(Poly& rest, Coefficient e, Poly& quotient, Poly& remainder) {
  left_opaque_ = true;
  remainder.clear();
  if (rest.failed || quotient.failed) {
    quotient.failed = true;
    remainder.failed = true;
    return;
  }
  normalize(rest);
  if (rest.failed) {
    remainder.failed = true;
    return;
  }
  if (rest.is_constant() && e.symbols == kOne) {
    quotient.add_constant(floor_quotient(rest.constant, e.factor));
    remainder.add_constant(floor_remainder(rest.constant, e.factor));
    return;
  }
  AtomId base;
  const Form key = store_.intern(rest);
  const auto single = store_.as_coefficient(key);
  if (single && single->factor == 1 && store_.monomial(single->symbols).count == 1) {
    base = store_.factors(single->symbols)[0];
  } else {
    AtomRecord record;
    record.kind = AtomKind::kNamed;
    record.bounds = store_.form(key).bounds;
    const Form args[] = {key};
    base = store_.intern_atom(record, args);
  }
  store_.add(quotient, digit(base, e, kNoRange));
  store_.add(remainder, digit(base, {}, e));
}

}  // namespace fusebox
