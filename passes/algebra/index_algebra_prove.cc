// Proves that a form is nonnegative at every point. First the loops are replaced by their bounds: a form is nonnegative
// if its least value over the loops, a form of symbols, is. A form of symbols is nonnegative if all its coefficients
// are, once each symbol is counted from its lower bound. It is also nonnegative if subtracting nonnegative multiples of
// facts leaves such a form. Facts are the assumptions and the definitions of atoms: for q = x div d, x - d·q >= 0 and
// d·q + d - 1 - x >= 0.
//
//   o in [0, q), q = (n + 127) div 128, t in [0, 128): the greatest value of 128·o + t - n is 128·q - 1 - n, and the
//   first of these facts shows that it is at most 126
#include <algorithm>
#include <array>
#include <numeric>

#include "ir/table/error.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox {
namespace {

constexpr int kProofDepth = 3;
constexpr int kProofEffort = 24;
constexpr uint32_t kMaxShiftDegree = 5;

// A fact over integers: c·x + k >= 0 gives x + floor(k / c) >= 0, where c divides every coefficient.
void tighten(Poly& fact) {
  int64_t common = 0;
  for (const RawTerm& term : fact.terms()) common = std::gcd(common, term.factor);
  if (fact.failed || common <= 1 || fact.constant == kMinusInfinity) return;
  for (RawTerm& term : fact.terms()) term.factor /= common;
  fact.constant = floor_quotient(fact.constant, common);
}

}  // namespace

bool IndexAlgebra::prove_nonneg(Form a) {
  start_question();
  return nonneg(resolve(a));
}

bool IndexAlgebra::prove_nonneg(Form a, std::span<const Form> given) {
  start_question();
  if (nonneg(resolve(a))) return true;
  return std::ranges::any_of(given, [&](Form known) {
    if (nonneg(sub(a, known))) return true;
    const int64_t k = ratio(a, known);
    return k > 1 && nonneg(sub(add(mul(a, k), constant(k - 1)), known));
  });
}

// How many times `b` counts what `a` counts once, by the first term that both have. 0: none, or not a whole number.
int64_t IndexAlgebra::ratio(Form a, Form b) const {
  for (const RawTerm& own : store_.terms(a))
    for (const RawTerm& other : store_.terms(b))
      if (own.monomial == other.monomial && own.factor != 0 && own.factor != kMinusInfinity &&
          other.factor != kMinusInfinity && other.factor % own.factor == 0)
        return other.factor / own.factor;
  return 0;
}

Form IndexAlgebra::under(Form value, std::span<const Form> given) {
  constexpr int kDepth = 3;  // of digits of digits
  return given.empty() ? value : under(value, given, kDepth);
}

Form IndexAlgebra::under(Form value, std::span<const Form> given, int depth) {
  value = resolve(value);
  const FormRecord record = store_.form(value);
  Form sum = constant(record.constant);
  bool changed = false;
  for (uint32_t i = 0; i < record.count; ++i) {
    const RawTerm term = store_.terms(value)[i];
    Form product = constant(term.factor);
    const uint32_t degree = store_.monomial(term.monomial).count;
    for (uint32_t j = 0; j < degree; ++j) {
      const AtomId atom = store_.factors(term.monomial)[j];
      const Form simpler = under(atom, given, depth);
      changed |= !(simpler == form_of(atom));
      product = mul(product, simpler);
    }
    sum = add(sum, product);
  }
  return changed ? sum : value;
}

Form IndexAlgebra::under(AtomId atom, std::span<const Form> given, int depth) {
  const AtomRecord record = store_.atom(atom);
  if (record.kind != AtomKind::kDigit || record.exact) return form_of(atom);
  const Form root = value_of({record.root}), divisor = store_.intern(record.divisor);
  const Form whole = depth > 0 ? under(root, given, depth - 1) : root;
  if (!(whole == root)) {
    // The digit of something simpler: (p mod n) / m is p / m below n.
    const Form quotient = floor_div(whole, divisor);
    return under(record.range == kNoRange ? quotient : mod(quotient, store_.intern(record.range)), given, depth - 1);
  }
  const auto is_below = [&](Form bound) { return prove_nonneg(sub(sub(bound, whole), constant(1)), given); };
  if (!prove_nonneg(whole, given)) return form_of(atom);
  if (is_below(divisor)) return {};
  if (record.range == kNoRange || !is_below(mul(divisor, store_.intern(record.range)))) return form_of(atom);
  return floor_div(whole, divisor);
}

bool IndexAlgebra::prove_le(Form a, Form b) {
  start_question();
  return nonneg(sub(b, a));
}

bool IndexAlgebra::prove_less(Form a, Form b) {
  start_question();
  return nonneg(sub(sub(b, a), constant(1)));
}

bool IndexAlgebra::nonneg(Form value) {
  const FormRecord record = store_.form(value);
  if (record.bounds.lo >= 0) return true;
  if (record.bounds.hi < 0) return false;
  ++proofs_;
  // A proof without facts always gives the same answer, so it is kept. A proof by facts counts as a use of them, so it
  // is not.
  constexpr int kKeptDepths = 8;
  const bool is_kept = effort_ <= 0 && facts_.empty() && depth_ < kKeptDepths;
  const int way = depth_ + (canonical_ ? kKeptDepths : 0);
  if (is_kept)
    if (const auto known = store_.known_nonneg(value, way)) return *known;
  const int before = effort_;
  if (effort_ <= 0) effort_ = kProofEffort;
  const auto least = extreme(value, false);
  bool shown = false;
  if (least) {
    Poly poly;
    store_.load(poly, *least);
    shown = nonneg_symbols(poly, kProofDepth);
  }
  if (!shown && record.loops != 0) shown = nonneg_with_facts(value);
  effort_ = before;
  if (is_kept) store_.keep_nonneg(value, way, shown);
  return shown;
}

// Tries each assumption with loops once, before the loops are replaced by their bounds.
bool IndexAlgebra::nonneg_with_facts(Form value) {
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].divisor || store_.form(facts_[i].nonneg).loops == 0) continue;
    const auto least = extreme(sub(value, resolve(facts_[i].nonneg)), false);
    if (!least) continue;
    Poly poly;
    store_.load(poly, *least);
    if (nonneg_symbols(poly, kProofDepth)) {
      use_fact(i);
      return true;
    }
  }
  return false;
}

bool IndexAlgebra::nonneg_symbols(const Poly& value, int depth) {
  if (value.failed) return false;
  if (store_.bounds(value).lo >= 0) return true;
  const auto target = must_vanish(value);
  if (!target && nonneg_shifted(value)) return true;
  if (depth == 0 || value.is_constant() || --effort_ < 0) return false;
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].divisor || store_.form(facts_[i].nonneg).loops != 0) continue;
    Poly fact;
    store_.load(fact, resolve(facts_[i].nonneg));
    if (subtract_fact(value, fact, target, depth)) {
      use_fact(i);
      return true;
    }
  }
  // The definitions of the value's atoms.
  for (uint32_t t = 0; t < value.count; ++t) {
    const uint32_t degree = store_.monomial(value.storage[t].monomial).count;
    for (uint32_t f = 0; f < degree; ++f) {
      const AtomId atom = store_.factors(value.storage[t].monomial)[f];
      const AtomRecord record = store_.atom(atom);
      const MonomialId self = store_.monomial_of(atom);
      Poly fact;
      if (record.bounds.hi != kInfinity) {
        fact.add_constant(record.bounds.hi);
        fact.add_term(-1, self);
        if (subtract_fact(value, fact, target, depth)) return true;
      }
      if (record.kind == AtomKind::kNamed) {
        for (const int64_t sign : {1, -1}) {
          fact.clear();
          store_.add(fact, store_.args(atom)[0], {sign, kOne});
          fact.add_term(-sign, self);
          if (subtract_fact(value, fact, target, depth)) return true;
        }
      } else if (record.kind == AtomKind::kMin || record.kind == AtomKind::kMax) {
        const int64_t sign = record.kind == AtomKind::kMin ? 1 : -1;
        for (uint32_t i = 0; i < 2; ++i) {
          fact.clear();
          store_.add(fact, store_.args(atom)[i], {sign, kOne});
          fact.add_term(-sign, self);
          if (subtract_fact(value, fact, target, depth)) return true;
        }
      } else if (record.kind == AtomKind::kDigit) {
        fact.clear();
        if (record.range != kNoRange) {
          fact.add_term(record.range.factor, record.range.symbols);
          fact.add_constant(-1);
          fact.add_term(-1, self);
          if (subtract_fact(value, fact, target, depth)) return true;
          continue;
        }
        const Form whole = resolve(value_of({record.root}));
        store_.add(fact, whole);
        store_.add_product(fact, {-record.divisor.factor, record.divisor.symbols}, self);
        tighten(fact);
        if (subtract_fact(value, fact, target, depth)) return true;
        fact.clear();
        store_.add_product(fact, record.divisor, self);
        fact.add_term(record.divisor.factor, record.divisor.symbols);
        fact.add_constant(-1);
        store_.add(fact, whole, {-1, kOne});
        tighten(fact);
        if (subtract_fact(value, fact, target, depth)) return true;
      }
    }
  }
  return false;
}

// A negative term that no positive term can outweigh, if there is one. A fact must take it away.
std::optional<MonomialId> IndexAlgebra::must_vanish(const Poly& value) const {
  for (uint32_t t = 0; t <= value.count; ++t) {
    const RawTerm term = t == value.count ? RawTerm{value.constant, kOne} : value.storage[t];
    if (term.factor >= 0) continue;
    const bool outweighed = std::ranges::any_of(value.terms(), [&](const RawTerm& other) {
      return other.factor > 0 && store_.has_factors(other.monomial, term.monomial);
    });
    if (!outweighed) return term.monomial;
  }
  return std::nullopt;
}

// Whether every coefficient is nonnegative once each atom is written as its lower bound plus something nonnegative. It
// cannot succeed if a term must vanish.
bool IndexAlgebra::nonneg_shifted(const Poly& value) {
  Poly shifted;
  shifted.constant = value.constant;
  for (const RawTerm& term : value.terms()) {
    const uint32_t degree = store_.monomial(term.monomial).count;
    if (degree > kMaxShiftDegree) return false;
    std::array<AtomId, kMaxShiftDegree> atoms;
    for (uint32_t i = 0; i < degree; ++i) {
      atoms[i] = store_.factors(term.monomial)[i];
      if (store_.atom(atoms[i]).bounds.lo == kMinusInfinity) return false;
    }
    for (uint32_t chosen = 0; chosen < (1u << degree); ++chosen) {
      Coefficient part{term.factor, kOne};
      for (uint32_t i = 0; i < degree && part.factor != 0; ++i) {
        if ((chosen >> i & 1) != 0) {
          part.symbols = store_.product(part.symbols, store_.monomial_of(atoms[i]));
        } else {
          shifted.failed |= __builtin_mul_overflow(part.factor, store_.atom(atoms[i]).bounds.lo, &part.factor);
        }
      }
      shifted.add_term(part.factor, part.symbols);
    }
  }
  if (shifted.failed || shifted.constant < 0) return false;
  return std::ranges::all_of(shifted.terms(), [](const RawTerm& term) { return term.factor >= 0; });
}

// Whether subtracting some nonnegative multiple of the fact leaves a value that is shown. The multiple makes a negative
// term of the value vanish: the target, if there is one.
bool IndexAlgebra::subtract_fact(const Poly& value, const Poly& fact, std::optional<MonomialId> target, int depth) {
  if (fact.failed) return false;
  for (uint32_t t = 0; t <= value.count; ++t) {
    const RawTerm term = t == value.count ? RawTerm{value.constant, kOne} : value.storage[t];
    if (term.factor >= 0 || term.factor == kMinusInfinity || (target && term.monomial != *target)) continue;
    for (uint32_t f = 0; f <= fact.count; ++f) {
      const RawTerm part = f == fact.count ? RawTerm{fact.constant, kOne} : fact.storage[f];
      if (part.factor >= 0 || part.factor == kMinusInfinity) continue;
      const auto symbols = store_.quotient(term.monomial, part.monomial);
      if (!symbols || store_.bounds(*symbols).lo < 0) continue;
      const int64_t g = std::gcd(term.factor, part.factor);
      Poly rest;
      store_.add(rest, value, {-part.factor / g, kOne});
      store_.add(rest, fact, {term.factor / g, *symbols});
      if (nonneg_symbols(rest, depth - 1)) return true;
      if (effort_ < 0) return false;
    }
  }
  return false;
}

// The greatest or least value over the loops, as a form of the symbols. The sign of a coefficient decides at which
// bound its loop part stands.
std::optional<Form> IndexAlgebra::extreme(Form value, bool upper) {
  const FormRecord record = store_.form(value);
  if (record.loops == 0) return value;
  Poly poly;
  store_.load(poly, value);
  Form sum = constant(record.constant);
  std::array<bool, kMaxTerms> done{};
  for (uint32_t i = 0; i < poly.count; ++i) {
    if (done[i]) continue;
    const MonomialId loops = store_.monomial(poly.storage[i].monomial).loop_part;
    if (loops == kOne) {
      sum = add(sum, store_.intern(Coefficient{poly.storage[i].factor, poly.storage[i].monomial}));
      continue;
    }
    Poly factor;
    for (uint32_t j = i; j < poly.count; ++j) {
      const MonomialRecord& monomial = store_.monomial(poly.storage[j].monomial);
      if (monomial.loop_part != loops) continue;
      factor.add_term(poly.storage[j].factor, monomial.symbol_part);
      done[j] = true;
    }
    if (factor.failed) return std::nullopt;
    const Form coefficient = store_.intern(factor);
    bool grows = store_.form(coefficient).bounds.lo >= 0;
    if (!grows && store_.form(coefficient).bounds.hi > 0) {
      grows = nonneg_symbols(factor, 1);
      if (!grows && !nonneg(neg(coefficient))) return std::nullopt;
    }
    const auto factors = store_.factors(loops);
    const std::vector<AtomId> atoms(factors.begin(), factors.end());
    Form part = constant(1);
    for (const AtomId atom : atoms) {
      // A product is monotone in each factor only if all factors are nonnegative.
      if (atoms.size() > 1 && store_.atom(atom).bounds.lo < 0) return std::nullopt;
      const auto bound = atom_extreme(atom, upper == grows);
      if (!bound) return std::nullopt;
      part = mul(part, *bound);
    }
    sum = add(sum, mul(coefficient, part));
  }
  return sum;
}

// Prefers a bound by symbols, because it cancels against extents and a number does not.
std::optional<Form> IndexAlgebra::atom_extreme(AtomId atom, bool upper) {
  const AtomRecord record = store_.atom(atom);
  const int64_t known = upper ? record.bounds.hi : record.bounds.lo;
  const bool finite = known != kInfinity && known != kMinusInfinity;
  if (record.kind == AtomKind::kLoop && upper)
    return sub(loops_[record.index].extent, constant(defects_.has(Defect::kRangeOneShort) ? 2 : 1));
  if (record.kind == AtomKind::kDigit && upper && record.range.symbols != kOne) {
    return sub(store_.intern(record.range), constant(1));
  }
  // A remainder has finite bounds, and so has the quotient of a value with finite bounds.
  if (record.kind == AtomKind::kDigit && record.range == kNoRange && (upper || !finite) && depth_ < kProofDepth) {
    ++depth_;
    const auto whole = extreme(value_of({record.root}), upper);
    const auto bound = whole ? std::optional(floor_div(*whole, store_.intern(record.divisor))) : std::nullopt;
    --depth_;
    if (bound) return bound;
  }
  if (finite) return constant(known);
  return std::nullopt;
}

IntBounds IndexAlgebra::int_bounds(Form value) const {
  const Interval bounds = store_.given_form(value).bounds;
  IntBounds result;
  if (bounds.lo != kMinusInfinity) result.lower = bounds.lo;
  if (bounds.hi != kInfinity) result.upper = bounds.hi;
  return result;
}

FormBounds IndexAlgebra::bounds(Form value) {
  start_question();
  value = resolve(value);
  return {extreme(value, false), extreme(value, true)};
}

// -- Equality

bool IndexAlgebra::equal(Form a, Form b) {
  start_question();
  a = resolve(a);
  b = resolve(b);
  return a == b || same_by_floors(a, b);
}

// Writes both forms with quotients alone: digit(x, d, r) = x div d - r·(x div d·r). Then a form has one spelling,
// except inside opaque atoms: the quotients of one loop by 1, 2, … below its extent are linearly independent. Opaque
// atoms are compared at the points.
bool IndexAlgebra::same_by_floors(Form a, Form b) {
  const Form difference = sub(a, b);
  if (difference == Form{}) return true;
  const Interval bounds = store_.form(difference).bounds;
  if (bounds.lo > 0 || bounds.hi < 0) return false;
  canonical_ = true;
  Poly poly;
  add_floors(poly, rebuild(difference, nullptr), {}, 0);
  canonical_ = false;
  return (!poly.failed && poly.count == 0 && poly.constant == 0) || is_zero_at_every_point(difference);
}

// Tries all points of a small nest, if the extents of the loops that the value has are constants. The points come in a
// scattered order, in which forms that differ mostly do so at one of the first.
bool IndexAlgebra::is_zero_at_every_point(Form value) {
  constexpr int64_t kMostPoints = 1 << 14, kStride = 1'000'003;  // a prime, so that the steps meet every point once
  std::vector<std::pair<size_t, int64_t>> extents;               // by the caller's id
  int64_t count = 1;
  for (size_t i = 0; i < loops_.size(); ++i) {
    if (!depends_on(value, loop_ids_[i])) continue;
    const auto extent = constant_value(loops_[i].extent);
    if (!extent || *extent < 1 || *extent > kMostPoints || (count *= *extent) > kMostPoints) return false;
    extents.emplace_back(static_cast<size_t>(loop_ids_[i]), *extent);
  }
  std::vector<int64_t> point(loop_index_.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = i * kStride % count;
    for (const auto& [loop, extent] : extents) {
      point[loop] = at % extent;
      at /= extent;
    }
    if (evaluate(value, point, {}) != 0) return false;  // or it has a symbol
  }
  return true;
}

void IndexAlgebra::add_floors(Poly& poly, Form value, Coefficient coefficient, int depth) {
  constexpr int kMaxFloorDepth = 6;
  const FormRecord record = store_.form(value);
  int64_t scaled = 0;
  poly.failed |= __builtin_mul_overflow(record.constant, coefficient.factor, &scaled);
  poly.add_term(scaled, coefficient.symbols);
  for (uint32_t i = 0; i < record.count && !poly.failed; ++i) {
    const RawTerm term = store_.terms(value)[i];
    if (__builtin_mul_overflow(term.factor, coefficient.factor, &scaled)) {
      poly.failed = true;
      return;
    }
    bool expanded = false;
    const uint32_t degree = store_.monomial(term.monomial).count;
    for (uint32_t f = 0; f < degree && !expanded && depth < kMaxFloorDepth; ++f) {
      const AtomId atom = store_.factors(term.monomial)[f];
      const Coefficient range = range_of(atom);
      const bool named = store_.atom(atom).kind == AtomKind::kNamed;
      if (range == kNoRange && !named) continue;
      const MonomialId rest =
          store_.product(coefficient.symbols, *store_.quotient(term.monomial, store_.monomial_of(atom)));
      if (rest == kNoMonomial) {
        poly.failed = true;
        return;
      }
      expanded = true;
      if (named) {
        add_floors(poly, store_.args(atom)[0], {scaled, rest}, depth + 1);
        continue;
      }
      const AtomId base{store_.atom(atom).root};
      const auto end = product(divisor_of(atom), range);
      const auto factor = product({-scaled, rest}, range);
      if (!end || !factor || scaled == kMinusInfinity) {
        poly.failed = true;
        return;
      }
      add_floors(poly, fused_digit(base, divisor_of(atom), kNoRange), {scaled, rest}, depth + 1);
      add_floors(poly, fused_digit(base, *end, kNoRange), *factor, depth + 1);
    }
    if (!expanded) store_.add_product(poly, {scaled, coefficient.symbols}, term.monomial);
  }
}

// -- Divisibility and dependence

bool IndexAlgebra::divides(int64_t divisor, Form value) { return divides(constant(divisor), value); }

bool IndexAlgebra::divides(Form divisor, Form value) {
  start_question();
  divisor = symbol_of(divisor);
  value = resolve(value);
  if (value == Form{}) return true;
  const auto d = store_.as_coefficient(divisor);
  if (!d) return false;
  const Coefficient unit{d->factor == kMinusInfinity ? d->factor : std::abs(d->factor), d->symbols};
  const FormRecord record = store_.form(value);
  bool visible = record.constant == 0 || exact_quotient({record.constant, kOne}, unit);
  for (uint32_t i = 0; i < record.count && visible; ++i) {
    const RawTerm term = store_.terms(value)[i];
    visible = exact_quotient({term.factor, term.monomial}, unit).has_value();
  }
  if (visible) return true;
  for (size_t i = 0; i < facts_.size(); ++i) {
    const Fact& fact = facts_[i];
    if (!fact.divisor || fact.built_in) continue;
    const auto whole = store_.as_coefficient(value);
    const auto part = store_.as_coefficient(resolve(fact.value));
    const bool multiple = resolve(fact.value) == value || (whole && part && exact_quotient(*whole, *part));
    if (multiple && exact_quotient(*fact.divisor, unit)) {
      use_fact(i);
      return true;
    }
  }
  return is_positive(unit) && divide(value, store_.intern(unit)).remainder == Form{};
}

int64_t IndexAlgebra::content(Form value) const {
  int64_t result = store_.given_form(value).constant;
  if (result == kMinusInfinity) return 1;
  for (const RawTerm& term : store_.terms(value)) {
    if (term.factor == kMinusInfinity) return 1;
    result = std::gcd(result, term.factor);
  }
  return std::abs(result);
}

bool IndexAlgebra::depends_on(Form value, int loop_id) const {
  check_internal(has_loop(loop_id), "the index algebra knows no loop of this id");
  const AtomId loop = loops_[loop_index_[static_cast<size_t>(loop_id)] - 1].atom;
  const uint64_t bit = store_.atom(loop).loops;
  if ((store_.given_form(value).loops & bit) == 0) return false;
  // The last bit is shared by all loops from the 64th on.
  if (bit != uint64_t{1} << 63 || loops_.size() <= 64) return true;
  return mentions(value, loop);
}

bool IndexAlgebra::mentions(Form value, AtomId loop) const {
  for (const RawTerm& term : store_.terms(value)) {
    for (const AtomId factor : store_.factors(term.monomial)) {
      for (AtomId atom = factor;; atom = AtomId{store_.atom(atom).root}) {
        if (atom == loop) return true;
        for (const Form arg : store_.args(atom)) {
          if (mentions(arg, loop)) return true;
        }
        if (store_.atom(atom).root == atom.id) break;
      }
    }
  }
  return false;
}

std::optional<LinearForm> IndexAlgebra::linear_in(Form value, int loop_id) {
  value = resolve(value);
  if (!depends_on(value, loop_id)) return LinearForm{Form{}, value};
  const AtomId loop = loops_[loop_index_[static_cast<size_t>(loop_id)] - 1].atom;
  const MonomialId self = store_.monomial_of(loop);
  const FormRecord record = store_.form(value);
  LinearForm result{Form{}, constant(record.constant)};
  for (uint32_t i = 0; i < record.count; ++i) {
    const RawTerm term = store_.terms(value)[i];
    const Form whole = store_.intern(Coefficient{term.factor, term.monomial});
    if (!depends_on(whole, loop_id)) {
      result.rest = add(result.rest, whole);
      continue;
    }
    const auto others = store_.quotient(term.monomial, self);
    if (!others) return std::nullopt;
    const Form factor = store_.intern(Coefficient{term.factor, *others});
    if (depends_on(factor, loop_id)) return std::nullopt;
    result.coefficient = add(result.coefficient, factor);
  }
  return result;
}

}  // namespace fusebox
