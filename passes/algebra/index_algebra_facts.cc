// Keeps assumptions, and rebuilds forms when symbols get new meanings.
//
// A divisibility of a symbol is built in: if 128 divides n, n is replaced by 128·n' with n' = n / 128, so that every
// simplification sees it. A bound of a symbol is built into its int bounds. Other assumptions are kept, and proofs try
// them.
#include <algorithm>
#include <ranges>
#include <set>

#include "ir/table/error.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox {
namespace {

// Rounds up; the divisor is positive.
int64_t ceil_quotient(int64_t a, int64_t b) { return -floor_quotient(-a, b); }

}  // namespace

void IndexAlgebra::assume_divides(Form divisor, Form value, std::string_view reason) {
  divisor = resolve(divisor);
  value = resolve(value);
  const auto d = store_.as_coefficient(divisor);
  check_internal(!has_loops(divisor) && !has_loops(value), "a divisibility assumption is about values without loops");
  // Proofs divide only by products. A fact about another divisor, such as m - 1, would serve no proof.
  if (!d) return;
  Fact fact;
  fact.divisor = *d;
  fact.value = value;
  fact.reason = reason;
  fact.built_in = build_in(fact);
  facts_.push_back(std::move(fact));
  if (facts_.back().built_in) learnt();
}

void IndexAlgebra::assume_le(Form a, Form b, std::string_view reason) {
  Fact fact;
  fact.nonneg = sub(b, a);
  fact.reason = reason;
  fact.built_in = build_in(fact);
  facts_.push_back(std::move(fact));
  learnt();
}

bool IndexAlgebra::build_in(const Fact& fact) {
  if (!fact.divisor) {
    // n + c >= 0 or c - n >= 0
    const FormRecord& record = store_.form(fact.nonneg);
    if (record.count != 1 || record.loops != 0 || record.constant == kMinusInfinity) return false;
    const RawTerm term = store_.terms(fact.nonneg)[0];
    if (store_.monomial(term.monomial).count != 1 || term.factor == kMinusInfinity) return false;
    const AtomId atom = store_.factors(term.monomial)[0];
    if (term.factor > 0) {
      raise_lower(atom, ceil_quotient(-record.constant, term.factor));
    } else {
      Interval& bounds = store_.atom(atom).bounds;
      bounds.hi = std::min(bounds.hi, floor_quotient(record.constant, -term.factor));
    }
    return true;
  }
  // d | k·s: then d / gcd(d, k) divides s, so s becomes that divisor times a new symbol.
  const auto product_form = store_.as_coefficient(fact.value);
  if (!product_form || !is_positive(*fact.divisor)) return false;
  const Coefficient g = common_divisor(*fact.divisor, *product_form);
  const auto d = exact_quotient(*fact.divisor, g);
  const auto rest = exact_quotient(*product_form, g);
  if (!d || !rest || *d == Coefficient{} || store_.monomial(rest->symbols).count != 1) return false;
  if (d->symbols != kOne && std::abs(rest->factor) != 1) return false;
  const AtomId symbol = store_.factors(rest->symbols)[0];
  for (const AtomId factor : store_.factors(d->symbols)) {
    if (depends_on(factor, symbol)) return false;
  }
  AtomRecord record;
  record.kind = AtomKind::kDigit;
  record.root = symbol.id;
  record.divisor = *d;
  const Interval bounds = store_.atom(symbol).bounds;
  if (d->symbols == kOne) {
    record.bounds = interval_div(bounds, d->factor);
    if (bounds.lo != kMinusInfinity) record.bounds.lo = ceil_quotient(bounds.lo, d->factor);
  } else {
    record.bounds = {bounds.lo >= 1 ? 1 : std::min<int64_t>(0, bounds.lo), std::max<int64_t>(0, bounds.hi)};
  }
  const AtomId part = store_.intern_atom(record, {});
  store_.atom(part).exact = true;
  store_.atom(part).keep = true;
  store_.atom(part).stale = false;
  store_.atom(part).bounds = record.bounds;
  Poly poly;
  store_.add_product(poly, *d, store_.monomial_of(part));
  if (poly.failed) return false;
  replaced_.emplace_back(symbol, store_.intern(poly));
  store_.atom(symbol).stale = true;
  return true;
}

// Whether an atom, as it would be rebuilt now, contains the symbol. Replacing a symbol by a form that contains it would
// never end.
bool IndexAlgebra::depends_on(AtomId atom, AtomId symbol) const {
  if (atom == symbol) return true;
  for (const auto& [from, replacement] : replaced_) {
    if (from == atom) return depends_on(replacement, symbol);
  }
  const AtomRecord& record = store_.atom(atom);
  if (record.exact || record.kind == AtomKind::kLoop) return false;
  if (record.kind == AtomKind::kDigit) {
    const auto in = [&](MonomialId m) {
      return std::ranges::any_of(store_.factors(m), [&](AtomId f) { return depends_on(f, symbol); });
    };
    return depends_on(AtomId{record.root}, symbol) || in(record.divisor.symbols) || in(record.range.symbols);
  }
  return std::ranges::any_of(store_.args(atom), [&](Form arg) { return depends_on(arg, symbol); });
}

bool IndexAlgebra::depends_on(Form value, AtomId symbol) const {
  for (const RawTerm& term : store_.terms(value)) {
    for (const AtomId factor : store_.factors(term.monomial)) {
      if (depends_on(factor, symbol)) return true;
    }
  }
  return false;
}

void IndexAlgebra::use_fact(size_t index) {
  facts_[index].used = true;
  facts_[index].used_last = true;
}

void IndexAlgebra::start_question() {
  for (Fact& fact : facts_) fact.used_last = false;
}

std::vector<std::string> IndexAlgebra::last_reasons() const {
  std::vector<std::string> reasons;
  for (const Fact& fact : facts_) {
    if (fact.used_last || fact.built_in) reasons.push_back(fact.reason);
  }
  return reasons;
}

std::vector<std::string> IndexAlgebra::all_reasons() const {
  std::vector<std::string> reasons;
  for (const Fact& fact : facts_) {
    if (fact.used || fact.built_in) reasons.push_back(fact.reason);
  }
  return reasons;
}

// Requires value >= lower, and the bounds that follow for symbols in a product or quotient. True if a bound is news. In a
// sum of symbols and their quotients, each term is at least what the others leave: from n - n div 32 >= 1 follows n >= 1. A
// factor of all terms is not 0 where the sum is positive: from 2·n·n + 3·n >= 1 follows n >= 1, and 2·n + 3 >= 1.
bool IndexAlgebra::require_at_least(Form value, int64_t lower) {
  const FormRecord record = store_.form(value);
  int64_t rest = 0;
  if (record.loops != 0 || __builtin_sub_overflow(lower, record.constant, &rest)) return false;
  const std::vector<RawTerm> terms(store_.terms(value).begin(), store_.terms(value).end());
  const auto is_simple = [&](const RawTerm& term) {
    return std::ranges::all_of(store_.factors(term.monomial), [&](AtomId atom) {
      const AtomRecord& whole =
          store_.atom(atom).kind == AtomKind::kDigit ? store_.atom({store_.atom(atom).root}) : store_.atom(atom);
      return whole.kind == AtomKind::kSymbol;
    });
  };
  bool news = false;
  if (terms.size() > 1 && rest >= 1) {
    const auto first = store_.factors(terms[0].monomial);
    std::vector<AtomId> common;
    for (const AtomId atom : std::set<AtomId>(first.begin(), first.end())) {
      const bool is_common = std::ranges::all_of(
          terms, [&](const RawTerm& t) { return std::ranges::count(store_.factors(t.monomial), atom) > 0; });
      if (!is_common || store_.atom(atom).bounds.lo < 0) continue;
      news = raise_lower(atom, 1) || news;
      common.push_back(atom);
    }
    if (!common.empty()) news = require_quotient(terms, common) || news;
  }
  if (terms.size() > 1 && !std::ranges::all_of(terms, is_simple)) return news;
  for (size_t i = 0; i < terms.size(); ++i) {
    int64_t least = rest;
    bool is_bounded = least != kMinusInfinity;
    for (size_t k = 0; k < terms.size() && is_bounded; ++k) {
      if (k == i) continue;
      Poly other;
      other.add_term(terms[k].factor, terms[k].monomial);
      const int64_t most = store_.bounds(other).hi;
      is_bounded = most != kInfinity && !__builtin_sub_overflow(least, most, &least) && least != kMinusInfinity;
    }
    if (is_bounded) news = require_at_least(terms[i], least) || news;
  }
  return news;
}

// Requires that a sum without its common factors, which are positive, is positive: from m·a + m·b >= 1 follows a + b >= 1, for
// a + b as one symbol too.
bool IndexAlgebra::require_quotient(std::span<const RawTerm> terms, std::span<const AtomId> common) {
  Poly poly;
  for (const RawTerm& term : terms) {
    const auto all = store_.factors(term.monomial);
    std::vector<AtomId> left(all.begin(), all.end());
    for (const AtomId atom : common) left.erase(std::ranges::find(left, atom));
    MonomialId rest = kOne;
    for (const AtomId atom : left) rest = store_.product(rest, store_.monomial_of(atom));
    if (rest == kNoMonomial) return false;
    if (rest == kOne)
      poly.add_constant(term.factor);
    else
      poly.add_term(term.factor, rest);
  }
  normalize(poly);
  if (poly.failed) return false;
  const Form quotient = store_.intern(poly);
  bool news = require_at_least(quotient, 1);
  const auto named = store_.as_coefficient(symbol_of(quotient));
  if (named && named->factor > 0 && store_.factors(named->symbols).size() == 1)
    news = raise_lower(store_.factors(named->symbols)[0], 1) || news;
  return news;
}

// The same for one term.
bool IndexAlgebra::require_at_least(const RawTerm& term, int64_t lower) {
  if (term.factor <= 0) return false;
  const int64_t least = ceil_quotient(lower, term.factor);
  const std::vector<AtomId> factors(store_.factors(term.monomial).begin(), store_.factors(term.monomial).end());
  if (factors.size() == 1) return raise_lower(factors[0], least);
  if (least < 1) return false;
  for (const AtomId atom : factors) {
    if (store_.atom(atom).bounds.lo < 0) return false;
  }
  bool news = false;
  for (const AtomId atom : factors) news = raise_lower(atom, 1) || news;
  return news;
}

bool IndexAlgebra::raise_lower(AtomId atom, int64_t lower) {
  const AtomRecord record = store_.atom(atom);
  if (lower <= record.bounds.lo) return false;
  store_.atom(atom).bounds.lo = lower;
  if (record.kind == AtomKind::kNamed || record.kind == AtomKind::kMin) {
    for (uint32_t i = 0; i < record.args_count; ++i) require_at_least(store_.args(atom)[i], lower);
  } else if (record.kind == AtomKind::kQuotient && lower >= 1) {
    // The divisor is not 0, and x div d >= 1 implies x >= d.
    const Form whole = store_.args(atom)[0];
    const Form divisor = store_.args(atom)[1];
    if (store_.form(divisor).bounds.lo >= 0) {
      require_at_least(divisor, 1);
      require_at_least(sub(whole, divisor), 0);
    }
  } else if (record.kind == AtomKind::kDigit && record.range == kNoRange) {
    const AtomId base{record.root};
    if (record.divisor.symbols != kOne) {
      // x div d >= c implies x >= c·d.
      const Form least = mul(store_.intern(record.divisor), lower);
      require_at_least(sub(value_of(base), least), 0);
      if (lower < 0) return true;
    }
    int64_t whole = lower;
    if (record.divisor.symbols == kOne && __builtin_mul_overflow(lower, record.divisor.factor, &whole)) return true;
    raise_lower(base, whole);
    if (store_.atom(base).kind == AtomKind::kNamed) require_at_least(store_.args(base)[0], whole);
  }
  return true;
}

// Computes all bounds again and marks the forms that mention a replaced symbol. Cached results are dropped.
void IndexAlgebra::learnt() {
  digits_.clear();
  digit_table_.clear();
  divisions_.clear();
  division_table_.clear();
  rebuilt_.forget();
  // An atom is made of older atoms, but also of forms whose records are refreshed after it. So rounds repeat until
  // nothing changes.
  constexpr int kMaxRounds = 8;
  for (int round = 0; round < kMaxRounds; ++round) {
    store_.refresh();
    bool changed = false;
    for (uint32_t id = 0; id < store_.atom_count(); ++id) changed = refresh({id}) || changed;
    bool is_rebuilt = false;
    for (Loop& loop : loops_) {
      is_rebuilt |= store_.form(loop.extent).stale;
      changed = refresh(loop) || changed;
    }
    if (!changed && !is_rebuilt) return;
    if (!changed) break;
  }
  store_.refresh();
}

bool IndexAlgebra::refresh(Loop& loop) {
  loop.extent = resolve(loop.extent);
  AtomRecord& atom = store_.atom(loop.atom);
  const int64_t extent = store_.form(loop.extent).bounds.hi;
  const int64_t last = extent == kInfinity ? kInfinity : std::max<int64_t>(0, extent - 1);
  if (last >= atom.bounds.hi) return false;
  atom.bounds.hi = last;
  if (last == 0) {
    atom.stale = true;
    loop.value = Form{};
  }
  return true;
}

bool IndexAlgebra::refresh(AtomId id) {
  AtomRecord& atom = store_.atom(id);
  const AtomRecord before = atom;
  Interval bounds = before.bounds;
  if (before.kind == AtomKind::kDigit) {
    bounds = digit_bounds(before);
  } else if (before.kind == AtomKind::kNamed) {
    bounds = store_.form(store_.args(id)[0]).bounds;
  }
  atom.bounds = {std::max(before.bounds.lo, bounds.lo), std::min(before.bounds.hi, bounds.hi)};
  if (!before.stale && !before.keep) {
    if (before.kind == AtomKind::kDigit) {
      atom.stale = store_.atom(AtomId{before.root}).stale || store_.monomial(before.divisor.symbols).stale ||
                   store_.monomial(before.range.symbols).stale;
    } else if (before.kind == AtomKind::kQuotient || before.kind == AtomKind::kRemainder) {
      // The divisor turned out not to be 0.
      const auto divisor = store_.as_coefficient(store_.args(id)[1]);
      atom.stale = divisor && !has_loops(store_.args(id)[1]) && is_positive(*divisor);
    }
    for (const Form arg : store_.args(id)) atom.stale |= store_.form(arg).stale;
  }
  return atom.bounds != before.bounds || atom.stale != before.stale;
}

// -- Rebuilding

Form IndexAlgebra::substitute(Form value, const FormSubstitution& substitution) {
  store_.given_form(value);
  return rebuild(value, &substitution);
}

// A form that cannot be improved stays stale, so operations inside the rebuilding do not ask again. Many operations meet
// the same stale form. A result that rests on no proof is kept: a proof counts as a use of facts, and of effort.
Form IndexAlgebra::rebuild_stale(Form value) {
  const int way = 2 * depth_ + (canonical_ ? 1 : 0);
  if (const auto known = store_.known_rebuilt(value, way)) return *known;
  const uint64_t before = proofs_;
  resolving_ = true;
  const Form result = rebuild(value, nullptr);
  resolving_ = false;
  if (proofs_ == before) store_.keep_rebuilt(value, way, result);
  return result;
}

Form IndexAlgebra::rebuild(Form value, const FormSubstitution* substitution) {
  const FormRecord record = store_.form(value);
  const RebuiltAtoms::Scope scope(rebuilt_, {substitution, depth_, effort_, canonical_, resolving_});
  Form sum = constant(record.constant);
  for (uint32_t i = 0; i < record.count; ++i) {
    const RawTerm term = store_.terms(value)[i];
    Form product = constant(term.factor);
    const uint32_t degree = store_.monomial(term.monomial).count;
    for (uint32_t j = 0; j < degree; ++j) {
      const AtomId atom = store_.factors(term.monomial)[j];
      const Form* const known = rebuilt_.find(atom);
      const Form made = known != nullptr ? *known : rebuild(atom, substitution);
      if (known == nullptr) rebuilt_.keep(atom, made);
      product = mul(product, made);
    }
    sum = add(sum, product);
  }
  return sum;
}

Form IndexAlgebra::rebuild(AtomId atom, const FormSubstitution* substitution) {
  const AtomRecord record = store_.atom(atom);
  if (record.kind == AtomKind::kSymbol && substitution != nullptr) {
    for (const auto& [id, form] : substitution->symbols) {
      if (id == symbol_ids_[record.index]) return resolve(form);
    }
  }
  if (record.kind == AtomKind::kLoop) {
    if (substitution != nullptr) {
      for (const auto& [id, form] : substitution->loops) {
        if (id == loop_ids_[record.index]) return resolve(form);
      }
    }
    return loops_[record.index].value;
  }
  const bool substitutes_symbols = substitution != nullptr && !substitution->symbols.empty();
  if (!substitutes_symbols) {
    for (const auto& [symbol, replacement] : replaced_) {
      if (symbol == atom) return rebuild(replacement, nullptr);
    }
    if (record.exact) return store_.intern(Coefficient{1, store_.monomial_of(atom)});
  }
  const auto arg = [&](uint32_t i) { return rebuild(store_.args(atom)[i], substitution); };
  switch (record.kind) {
    case AtomKind::kSymbol:
      for (const auto& [symbol, replacement] : replaced_) {
        if (symbol == atom) return rebuild(replacement, nullptr);
      }
      return store_.intern(Coefficient{1, store_.monomial_of(atom)});
    case AtomKind::kLoop:
      break;
    case AtomKind::kDigit: {
      const Form whole = rebuild(value_of({record.root}), substitution);
      const Form quotient = floor_div(whole, rebuild(store_.intern(record.divisor), substitution));
      if (record.range == kNoRange) return quotient;
      return mod(quotient, rebuild(store_.intern(record.range), substitution));
    }
    case AtomKind::kNamed:
      return symbol_of(arg(0));
    case AtomKind::kXor: {
      Form result = arg(0);
      for (uint32_t i = 1; i < record.args_count; ++i) result = bit_xor(result, arg(i));
      return result;
    }
    // An extent stays one factor.
    case AtomKind::kQuotient: {
      const Form quotient = floor_div(arg(0), arg(1));
      return has_loops(quotient) ? quotient : symbol_of(quotient);
    }
    case AtomKind::kRemainder:
      return mod(arg(0), arg(1));
    case AtomKind::kMin:
      return min(arg(0), arg(1));
    case AtomKind::kMax:
      return max(arg(0), arg(1));
    case AtomKind::kSum:
      return add(arg(0), arg(1));
    case AtomKind::kProduct:
      return mul(arg(0), arg(1));
  }
  return {};
}

}  // namespace fusebox
