#include "passes/algebra/index_algebra.h"

#include <algorithm>
#include <array>
#include <bit>

#include "ir/table/error.h"

namespace fusebox {
namespace {

// Simplifications that start one another stop at this depth and leave an atom as it is.
constexpr int kMaxDepth = 12;
// Digits that meet in one form are fused or cut at most this often.
constexpr int kMaxRewrites = 64;

uint32_t digit_hash(AtomId base, Coefficient divisor, Coefficient range) {
  uint64_t hash = base.id;
  for (const uint64_t part : {static_cast<uint64_t>(divisor.factor), static_cast<uint64_t>(divisor.symbols),
                              static_cast<uint64_t>(range.factor), static_cast<uint64_t>(range.symbols)}) {
    hash = (hash ^ part) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash ^ (hash >> 29));
}

void place(std::vector<uint32_t>& index_by_id, int id, size_t index) {
  check_internal(id >= 0, "the id of a loop of the index algebra is negative");
  if (index_by_id.size() <= static_cast<size_t>(id)) index_by_id.resize(static_cast<size_t>(id) + 1);
  index_by_id[static_cast<size_t>(id)] = static_cast<uint32_t>(index + 1);
}

bool has(const std::vector<uint32_t>& index_by_id, int id) {
  return id >= 0 && static_cast<size_t>(id) < index_by_id.size() && index_by_id[static_cast<size_t>(id)] != 0;
}

uint32_t index_of(const std::vector<uint32_t>& index_by_id, int id) {
  check_internal(has(index_by_id, id), "the index algebra knows no loop of this id");
  return index_by_id[static_cast<size_t>(id)] - 1;
}

}  // namespace

void IndexAlgebra::clear() {
  store_.clear();
  symbols_.clear();
  loops_.clear();
  symbol_ids_.clear();
  loop_ids_.clear();
  loop_index_.clear();
  facts_.clear();
  replaced_.clear();
  digits_.clear();
  digit_table_.clear();
  divisions_.clear();
  division_table_.clear();
}

// -- Declarations

Form IndexAlgebra::declare_symbol(int id, std::string_view name, SymbolRange range) {
  if (has_symbol(id)) return symbol(id);
  AtomRecord record;
  record.kind = AtomKind::kSymbol;
  record.index = static_cast<uint32_t>(symbols_.size());
  record.bounds = {range.lower, range.upper.value_or(kInfinity)};
  const AtomId atom = store_.intern_atom(record, {});
  check_internal(id >= 0, "the id of a symbol of the index algebra is negative");
  symbols_.push_back({std::string(name), atom});
  symbol_ids_.push_back(id);
  return symbol(id);
}

Form IndexAlgebra::declare_loop(int id, std::string_view name, Form extent) {
  if (has_loop(id)) return loop(id);
  extent = resolve(extent);
  check_internal(!has_loops(extent), "the extent of a loop depends on a loop");
  if (require_at_least(extent, 1)) {
    learnt();
    extent = resolve(extent);
  }
  AtomRecord record;
  record.kind = AtomKind::kLoop;
  record.index = static_cast<uint32_t>(loops_.size());
  record.loops = uint64_t{1} << std::min<size_t>(loops_.size(), 63);
  const Interval bounds = store_.form(extent).bounds;
  record.bounds = {0, bounds.hi == kInfinity ? kInfinity : std::max<int64_t>(0, bounds.hi - 1)};
  const AtomId atom = store_.intern_atom(record, {});
  Poly poly;
  if (record.bounds.hi > 0) poly.add_term(1, store_.monomial_of(atom));
  place(loop_index_, id, loops_.size());
  loops_.push_back({std::string(name), atom, store_.intern(poly), extent});
  loop_ids_.push_back(id);
  return loops_.back().value;
}

size_t IndexAlgebra::symbol_index(int id) const {
  return static_cast<size_t>(std::find(symbol_ids_.begin(), symbol_ids_.end(), id) - symbol_ids_.begin());
}

bool IndexAlgebra::has_loop(int id) const { return has(loop_index_, id); }

Form IndexAlgebra::symbol(int id) {
  const size_t index = symbol_index(id);
  check_internal(index < symbols_.size(), "the index algebra knows no symbol of this id");
  return resolve(store_.intern(Coefficient{1, store_.monomial_of(symbols_[index].atom)}));
}

Form IndexAlgebra::loop(int id) const { return loops_[index_of(loop_index_, id)].value; }
Form IndexAlgebra::loop_extent(int id) const { return loops_[index_of(loop_index_, id)].extent; }

// -- Arithmetic

Form IndexAlgebra::constant(int64_t value) { return store_.intern_constant(value); }

Form IndexAlgebra::add(Form a, Form b) {
  if (a == Form{}) return resolve(b);
  if (b == Form{}) return resolve(a);
  a = resolve(a);
  b = resolve(b);
  Poly poly;
  store_.load(poly, a);
  store_.add(poly, b);
  return finish(poly, AtomKind::kSum, a, b);
}

Form IndexAlgebra::sub(Form a, Form b) {
  if (a == b) return {};
  if (b == Form{}) return resolve(a);
  a = resolve(a);
  b = resolve(b);
  Poly poly;
  store_.load(poly, a);
  store_.add(poly, b, {-1, kOne});
  if (!poly.failed) normalize(poly);
  if (!poly.failed) return store_.intern(poly);
  const Form negated = neg(b);
  const Form args[] = {std::min(a, negated), std::max(a, negated)};
  return opaque(AtomKind::kSum, args, {});
}

Form IndexAlgebra::neg(Form a) { return mul(a, constant(-1)); }
Form IndexAlgebra::mul(Form a, int64_t factor) { return mul(a, constant(factor)); }

Form IndexAlgebra::mul(Form a, Form b) {
  a = resolve(a);
  b = resolve(b);
  Poly poly;
  const FormRecord record = store_.form(b);
  store_.add(poly, a, {record.constant, kOne});
  for (uint32_t i = 0; i < record.count; ++i) {
    const RawTerm term = store_.terms(b)[i];
    store_.add(poly, a, {term.factor, term.monomial});
  }
  return finish(poly, AtomKind::kProduct, a, b);
}

Form IndexAlgebra::floor_div(Form a, Form b) { return divide(a, b).quotient; }
Form IndexAlgebra::mod(Form a, Form b) { return divide(a, b).remainder; }
DivMod IndexAlgebra::div_mod(Form a, Form b) { return divide(a, b); }
Form IndexAlgebra::cyclic(Form a, Form b, Form extent) { return mod(add(a, b), extent); }

Form IndexAlgebra::ceil_div(Form a, Form b) {
  b = symbol_of(b);
  return floor_div(add(a, sub(b, constant(1))), b);
}

Form IndexAlgebra::bit_xor(Form a, Form b) {
  a = resolve(a);
  b = resolve(b);
  // Xors among the operands are taken apart, constants are joined, and equal operands cancel.
  constexpr size_t kMaxOperands = 16;
  std::array<Form, kMaxOperands> operands;
  size_t count = 0;
  int64_t constant_bits = 0;
  bool too_many = false;
  const auto add_operand = [&](Form operand) {
    if (const auto value = constant_value(operand)) {
      constant_bits ^= *value;
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      if (operands[i] != operand) continue;
      std::copy(operands.begin() + i + 1, operands.begin() + count, operands.begin() + i);
      --count;
      return;
    }
    if (count == kMaxOperands - 1) {
      too_many = true;
      return;
    }
    operands[count++] = operand;
  };
  for (const Form side : {a, b}) {
    const auto single = store_.as_coefficient(side);
    const auto factors = single ? store_.factors(single->symbols) : std::span<const AtomId>{};
    if (single && single->factor == 1 && factors.size() == 1 && store_.atom(factors[0]).kind == AtomKind::kXor) {
      const AtomId atom = factors[0];
      for (size_t i = 0; i < store_.args(atom).size(); ++i) add_operand(store_.args(atom)[i]);
    } else {
      add_operand(side);
    }
  }
  if (too_many) {
    const Form args[] = {std::min(a, b), std::max(a, b)};
    return opaque(AtomKind::kXor, args, {});
  }
  if (constant_bits != 0) operands[count++] = constant(constant_bits);
  if (count == 0) return {};
  if (count == 1) return operands[0];

  // An xor of bits is a sum mod 2. Forms that are compared use only that spelling.
  if (canonical_ && depth_ < kMaxDepth &&
      std::all_of(
          operands.begin(), operands.begin() + count,
          [&](Form f) {
            const Interval bounds = store_.form(f).bounds;
            return bounds.lo >= 0 && bounds.hi <= 1;
          })) {
    Form sum;
    for (size_t i = 0; i < count; ++i) sum = add(sum, operands[i]);
    return mod(sum, constant(2));
  }

  // If at most one operand is not a multiple of 2^k, that operand gives the low k bits. The result is 2^k × (xor of the
  // quotients) + low.
  int64_t smallest = kInfinity;
  int64_t second = kInfinity;
  size_t odd_one = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t power = int64_t{1} << std::min(62, std::countr_zero(static_cast<uint64_t>(content(operands[i]))));
    if (power < smallest) {
      second = smallest;
      smallest = power;
      odd_one = i;
    } else {
      second = std::min(second, power);
    }
  }
  if (second > 1 && depth_ < kMaxDepth) {
    ++depth_;
    const Form unit = constant(second);
    Form high;
    Form low;
    for (size_t i = 0; i < count; ++i) {
      const DivMod parts = divide(operands[i], unit);
      high = i == 0 ? parts.quotient : bit_xor(high, parts.quotient);
      if (i == odd_one) low = parts.remainder;
    }
    const Form result = add(mul(high, unit), low);
    --depth_;
    return result;
  }

  std::sort(operands.begin(), operands.begin() + count);
  Interval bounds{0, 0};
  for (size_t i = 0; i < count; ++i) {
    const Interval operand = store_.form(operands[i]).bounds;
    if (operand.lo < 0) bounds.lo = kMinusInfinity;
    bounds.hi = std::max(bounds.hi, operand.hi);
  }
  if (bounds.lo < 0 || bounds.hi >= int64_t{1} << 62) {
    bounds.hi = kInfinity;
  } else {
    bounds.hi = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bounds.hi) + 1)) - 1;
  }
  return opaque(AtomKind::kXor, {operands.data(), count}, bounds);
}

Form IndexAlgebra::min(Form a, Form b) {
  if (prove_le(a, b)) return resolve(a);
  if (prove_le(b, a)) return resolve(b);
  const Form args[] = {std::min(resolve(a), resolve(b)), std::max(resolve(a), resolve(b))};
  const Interval left = store_.form(args[0]).bounds;
  const Interval right = store_.form(args[1]).bounds;
  return opaque(AtomKind::kMin, args, {std::min(left.lo, right.lo), std::min(left.hi, right.hi)});
}

Form IndexAlgebra::max(Form a, Form b) {
  if (prove_le(a, b)) return resolve(b);
  if (prove_le(b, a)) return resolve(a);
  const Form args[] = {std::min(resolve(a), resolve(b)), std::max(resolve(a), resolve(b))};
  const Interval left = store_.form(args[0]).bounds;
  const Interval right = store_.form(args[1]).bounds;
  return opaque(AtomKind::kMax, args, {std::max(left.lo, right.lo), std::max(left.hi, right.hi)});
}

Form IndexAlgebra::symbol_of(Form value) {
  value = resolve(value);
  check_internal(!has_loops(value), "a form with loops was to be used as an extent");
  if (value == Form{} || store_.as_coefficient(value)) return value;
  Poly plain;
  store_.load(plain, value);
  if (expand_named(plain, {}) && !plain.failed) {
    normalize(plain);
    if (!plain.failed) value = store_.intern(plain);
    if (value == Form{} || store_.as_coefficient(value)) return value;
  }
  // 2n + 2 becomes 2 × (n + 1), so a visible divisor of the extent stays visible.
  const int64_t factor = std::max<int64_t>(1, content(value));
  Poly poly;
  poly.constant = store_.form(value).constant / factor;
  const uint32_t count = store_.form(value).count;
  for (uint32_t i = 0; i < count; ++i) {
    const RawTerm term = store_.terms(value)[i];
    poly.add_term(term.factor / factor, term.monomial);
  }
  const Form unit = store_.intern(poly);
  const Form args[] = {unit};
  return mul(opaque(AtomKind::kNamed, args, store_.form(unit).bounds), factor);
}

// -- Normal form

Form IndexAlgebra::opaque(AtomKind kind, std::span<const Form> args, Interval bounds) {
  AtomRecord record;
  record.kind = kind;
  record.bounds = bounds;
  return store_.intern(Coefficient{1, store_.monomial_of(store_.intern_atom(record, args))});
}

Form IndexAlgebra::finish(Poly& poly, AtomKind opaque_kind, Form a, Form b) {
  if (!poly.failed) normalize(poly);
  if (!poly.failed) return store_.intern(poly);
  const Form args[] = {std::min(a, b), std::max(a, b)};
  return opaque(opaque_kind, args, {});
}

void IndexAlgebra::normalize(Poly& poly) {
  for (int rewrites = 0; rewrites < kMaxRewrites && !poly.failed; ++rewrites) {
    bool changed = false;
    for (uint32_t i = 0; i < poly.count && !changed; ++i) {
      for (uint32_t j = i + 1; j < poly.count && !changed; ++j) changed = combine(poly, i, j);
    }
    if (!changed) return;
  }
}

bool IndexAlgebra::combine(Poly& poly, uint32_t i, uint32_t j) {
  const RawTerm a = poly.storage[i];
  const RawTerm b = poly.storage[j];
  const size_t a_count = store_.monomial(a.monomial).count;
  const size_t b_count = store_.monomial(b.monomial).count;
  for (size_t u = 0; u < a_count; ++u) {
    const AtomId a_atom = store_.factors(a.monomial)[u];
    for (size_t w = 0; w < b_count; ++w) {
      const AtomId b_atom = store_.factors(b.monomial)[w];
      if (a_atom == b_atom || store_.atom(a_atom).root != store_.atom(b_atom).root) continue;
      if (fuse(poly, a, a_atom, b, b_atom) || fuse(poly, b, b_atom, a, a_atom)) return true;
      if (refine(poly, a, a_atom, b, b_atom) || refine(poly, b, b_atom, a, a_atom)) return true;
    }
  }
  return false;
}

// c·digit(x, d, r) + c·r·digit(x, d·r, s) = c·digit(x, d, r·s).
bool IndexAlgebra::fuse(Poly& poly, RawTerm low, AtomId low_atom, RawTerm high, AtomId high_atom) {
  const Coefficient low_range = range_of(low_atom);
  if (low_range == kNoRange) return false;
  const auto divisor = product(divisor_of(low_atom), low_range);
  if (!divisor || *divisor != divisor_of(high_atom)) return false;
  int64_t factor = 0;
  if (__builtin_mul_overflow(low.factor, low_range.factor, &factor) || factor != high.factor) return false;
  const MonomialId low_rest = *store_.quotient(low.monomial, store_.monomial_of(low_atom));
  const MonomialId high_rest = *store_.quotient(high.monomial, store_.monomial_of(high_atom));
  if (store_.product(low_rest, low_range.symbols) != high_rest) return false;
  Coefficient range = range_of(high_atom);
  if (range != kNoRange) {
    const auto both = product(low_range, range);
    if (!both) return false;
    range = *both;
  }
  const Form fused = fused_digit({store_.atom(low_atom).root}, divisor_of(low_atom), range);
  poly.add_term(-low.factor, low.monomial);
  poly.add_term(-high.factor, high.monomial);
  store_.add(poly, fused, {low.factor, low_rest});
  return true;
}

// Cuts overlapping digits of one value where they begin or end, so that they become equal or disjoint. Digits of
// symbols are not cut: a whole symbol is more useful than its digits.
bool IndexAlgebra::refine(Poly& poly, RawTerm a, AtomId a_atom, RawTerm b, AtomId b_atom) {
  if (store_.atom(a_atom).loops == 0) return false;
  const Coefficient a_range = range_of(a_atom);
  const Coefficient b_range = range_of(b_atom);
  const auto at = exact_quotient(divisor_of(b_atom), divisor_of(a_atom));
  if (!at) return false;
  if (*at != Coefficient{}) return cut(poly, a, a_atom, *at);
  if (a_range != kNoRange) return cut(poly, b, b_atom, a_range);
  if (b_range != kNoRange) return cut(poly, a, a_atom, b_range);
  return false;
}

bool IndexAlgebra::cut(Poly& poly, RawTerm term, AtomId atom, Coefficient at) {
  const Coefficient range = range_of(atom);
  Coefficient high_range = kNoRange;
  if (range != kNoRange) {
    const auto rest = exact_quotient(range, at);
    if (!rest || *rest == Coefficient{}) return false;
    high_range = *rest;
  }
  const auto divisor = product(divisor_of(atom), at);
  if (!divisor) return false;
  const AtomId base{store_.atom(atom).root};
  const Form high = digit(base, *divisor, high_range);
  if (high == Form{}) return false;
  const Form low = digit(base, divisor_of(atom), at);
  const MonomialId rest = *store_.quotient(term.monomial, store_.monomial_of(atom));
  const auto high_factor = product({term.factor, rest}, at);
  if (!high_factor) return false;
  poly.add_term(-term.factor, term.monomial);
  store_.add(poly, low, {term.factor, rest});
  store_.add(poly, high, *high_factor);
  return true;
}

Coefficient IndexAlgebra::divisor_of(AtomId atom) const {
  return store_.atom(atom).kind == AtomKind::kDigit ? store_.atom(atom).divisor : Coefficient{};
}

Coefficient IndexAlgebra::range_of(AtomId atom) const {
  return store_.atom(atom).kind == AtomKind::kDigit ? store_.atom(atom).range : kNoRange;
}

Form IndexAlgebra::value_of(AtomId atom) {
  if (store_.atom(atom).kind == AtomKind::kNamed) return store_.args(atom)[0];
  return store_.intern(Coefficient{1, store_.monomial_of(atom)});
}

Form IndexAlgebra::digit(AtomId base, Coefficient divisor, Coefficient range) {
  if (range == Coefficient{}) return {};
  if (divisor == Coefficient{} && range == kNoRange) return value_of(base);
  const uint32_t hash = digit_hash(base, divisor, range);
  const auto found = digit_table_.find(hash, [&](uint32_t id) {
    return digits_[id].base == base && digits_[id].divisor == divisor && digits_[id].range == range;
  });
  if (found) return digits_[*found].result;
  const Form result = make_digit(base, divisor, range);
  digit_table_.insert(hash, static_cast<uint32_t>(digits_.size()));
  digits_.push_back({base, divisor, range, result});
  return result;
}

Form IndexAlgebra::make_digit(AtomId base, Coefficient divisor, Coefficient range) {
  const Interval whole = store_.atom(base).bounds;
  if (whole.lo >= 0) {
    const auto end = range == kNoRange ? std::nullopt : product(divisor, range);
    const bool symbolic = divisor.symbols != kOne || range.symbols != kOne || whole.hi == kInfinity;
    if (divisor.symbols == kOne && whole.hi < divisor.factor) return {};
    if (end && end->symbols == kOne && whole.hi < end->factor) {
      range = kNoRange;
    } else if (symbolic && depth_ < kMaxDepth) {
      ++depth_;
      const Form value = value_of(base);
      const bool zero = divisor != Coefficient{} && nonneg(sub(store_.intern(divisor), add(value, constant(1))));
      if (!zero && end && nonneg(sub(store_.intern(*end), add(value, constant(1))))) range = kNoRange;
      --depth_;
      if (zero) return {};
    }
    if (divisor == Coefficient{} && range == kNoRange) return value_of(base);
  }
  AtomRecord record;
  record.kind = AtomKind::kDigit;
  record.root = base.id;
  record.divisor = divisor;
  record.range = range;
  record.bounds = digit_bounds(record);
  return store_.intern(Coefficient{1, store_.monomial_of(store_.intern_atom(record, {}))});
}

Interval IndexAlgebra::digit_bounds(const AtomRecord& digit) const {
  const Interval whole = store_.atom(AtomId{digit.root}).bounds;
  Interval bounds;
  if (digit.divisor.symbols == kOne) {
    bounds = interval_div(whole, digit.divisor.factor);
  } else {
    // The divisor is at least 1, so the quotient lies between the value and 0 or -1.
    bounds = {std::min<int64_t>(0, whole.lo), std::max<int64_t>(-1, whole.hi)};
  }
  if (digit.range == kNoRange) return bounds;
  const Interval ranges = interval_mul({digit.range.factor, digit.range.factor}, store_.bounds(digit.range.symbols));
  const int64_t last = ranges.hi == kInfinity ? kInfinity : std::max<int64_t>(0, ranges.hi - 1);
  return {0, whole.lo >= 0 ? std::min(last, bounds.hi) : last};
}

Form IndexAlgebra::fused_digit(AtomId base, Coefficient divisor, Coefficient range) {
  if (store_.atom(base).kind != AtomKind::kNamed || depth_ >= kMaxDepth) return digit(base, divisor, range);
  ++depth_;
  const Form quotient = divide(store_.args(base)[0], store_.intern(divisor)).quotient;
  const Form result = range == kNoRange ? quotient : divide(quotient, store_.intern(range)).remainder;
  --depth_;
  return result;
}

// -- Structure that needs no proof

bool IndexAlgebra::has_loops(Form value) const { return store_.given_form(value).loops != 0; }
bool IndexAlgebra::is_constant(Form value) const { return store_.given_form(value).count == 0; }

std::optional<int64_t> IndexAlgebra::constant_value(Form value) const {
  if (!is_constant(value)) return std::nullopt;
  return store_.form(value).constant;
}

}  // namespace fusebox
