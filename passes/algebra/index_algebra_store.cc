#include "passes/algebra/index_algebra_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "ir/table/error.h"

namespace fusebox {
namespace {

// The sum or product of finite numbers. A result that does not fit is infinite.
int64_t clamped_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? kMinusInfinity : kInfinity;
  return sum;
}
int64_t clamped_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kInfinity : kMinusInfinity;
  return product;
}

bool infinite(int64_t bound) { return bound == kInfinity || bound == kMinusInfinity; }

// The product of two bounds. 0 × infinity is 0, because the value itself is finite.
int64_t bound_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? kInfinity : kMinusInfinity;
  return clamped_product(a, b);
}

struct Hash {
  uint64_t state = 0x9e3779b97f4a7c15;
  void mix(uint64_t value) {
    state = (state ^ value) * 0xff51afd7ed558ccd;
    state ^= state >> 32;
  }
  uint32_t value() const { return static_cast<uint32_t>(state ^ (state >> 29)); }
};

// A number for each algebra of the process, from 1. It tells algebras apart and reaches no result.
uint32_t next_owner() {
  static std::atomic<uint32_t> last = 0;
  uint32_t owner = 0;
  while (owner == 0) owner = ++last;
  return owner;
}

Interval interval_add(Interval a, Interval b) {
  Interval sum;
  if (a.lo != kMinusInfinity && b.lo != kMinusInfinity) sum.lo = clamped_sum(a.lo, b.lo);
  if (a.hi != kInfinity && b.hi != kInfinity) sum.hi = clamped_sum(a.hi, b.hi);
  // An infinite sum means "no bound" only on its own side. On the other side it becomes the nearest finite number.
  if (sum.lo == kInfinity) sum.lo = kInfinity - 1;
  if (sum.hi == kMinusInfinity) sum.hi = kMinusInfinity + 1;
  return sum;
}

Interval stated(int64_t lo, int64_t hi) {
  return {lo == kInfinity ? kInfinity - 1 : lo, hi == kMinusInfinity ? kMinusInfinity + 1 : hi};
}

Interval interval_scale(int64_t factor, Interval a) {
  if (factor == 1) return a;
  const int64_t at_lo = bound_mul(factor, a.lo), at_hi = bound_mul(factor, a.hi);
  return stated(std::min(at_lo, at_hi), std::max(at_lo, at_hi));
}

}  // namespace

Interval interval_mul(Interval a, Interval b) {
  // The usual case: the product is monotone in both if neither is negative.
  if (a.lo >= 0 && b.lo >= 0 && a.lo <= a.hi && b.lo <= b.hi)
    return stated(bound_mul(a.lo, b.lo), bound_mul(a.hi, b.hi));
  const int64_t ends[] = {bound_mul(a.lo, b.lo), bound_mul(a.lo, b.hi), bound_mul(a.hi, b.lo), bound_mul(a.hi, b.hi)};
  return stated(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4));
}

Interval interval_div(Interval a, int64_t divisor) {
  Interval result;
  if (a.lo != kMinusInfinity) result.lo = floor_quotient(a.lo, divisor);
  if (a.hi != kInfinity) result.hi = floor_quotient(a.hi, divisor);
  return result;
}

Poly& Poly::operator=(const Poly& other) {
  constant = other.constant;
  count = other.count;
  failed = other.failed;
  std::copy_n(other.storage.begin(), count, storage.begin());
  return *this;
}

void Poly::add_constant(int64_t value) { failed |= __builtin_add_overflow(constant, value, &constant); }

void Poly::add_term(int64_t factor, MonomialId monomial) {
  if (factor == 0) return;
  if (monomial == kOne) return add_constant(factor);
  for (uint32_t i = 0; i < count; ++i) {
    if (storage[i].monomial != monomial) continue;
    failed |= __builtin_add_overflow(storage[i].factor, factor, &storage[i].factor);
    if (storage[i].factor == 0) storage[i] = storage[--count];
    return;
  }
  append(factor, monomial);
}

void IdTable::clear() {
  if (!slots_.empty()) std::memset(static_cast<void*>(slots_.data()), 0, slots_.size() * sizeof(Slot));
  used_ = 0;
}

void IdTable::put(Slot slot) {
  size_t i = slot.hash & (slots_.size() - 1);
  while (slots_[i].id_plus_1 != 0) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = slot;
}

void IdTable::insert(uint32_t hash, uint32_t id) {
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Slot> old(std::max<size_t>(64, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id_plus_1 != 0) put(slot);
    }
  }
  put({hash, id + 1});
  ++used_;
}

void FormStore::refuse_foreign() {
  throw Error(ErrorCode::kInternal, "a form was used with another index algebra than the one that made it");
}

// Room for what a statement of a few loops needs, so that making one of many algebras does not grow each list by steps.
FormStore::FormStore() {
  atoms_.reserve(16);
  monomials_.reserve(32);
  forms_.reserve(64);
  factors_.reserve(32);
  terms_.reserve(64);
  args_.reserve(16);
  clear();
}

void FormStore::clear() {
  owner_ = next_owner();
  atoms_.clear();
  monomials_.clear();
  forms_.clear();
  factors_.clear();
  terms_.clear();
  args_.clear();
  rebuilt_.clear();
  atom_table_.clear();
  monomial_table_.clear();
  form_table_.clear();
  products_.fill({});
  small_constants_.fill(0);
  intern_monomial({});
  Poly zero;
  intern(zero);
}

AtomId FormStore::intern_atom(const AtomRecord& wanted, std::span<const Form> args) {
  Hash hash;
  hash.mix(static_cast<uint64_t>(wanted.kind) << 32 | wanted.index);
  const bool digit = wanted.kind == AtomKind::kDigit;
  if (digit) {
    hash.mix(static_cast<uint64_t>(wanted.root) << 32 | wanted.divisor.symbols);
    hash.mix(static_cast<uint64_t>(wanted.divisor.factor));
    hash.mix(static_cast<uint64_t>(wanted.range.factor));
    hash.mix(wanted.range.symbols);
  }
  for (const Form arg : args) hash.mix(arg.id);
  const auto found = atom_table_.find(hash.value(), [&](uint32_t id) {
    const AtomRecord& atom = atoms_[id];
    if (atom.kind != wanted.kind || atom.index != wanted.index) return false;
    if (digit && (atom.root != wanted.root || atom.divisor != wanted.divisor || atom.range != wanted.range))
      return false;
    return std::ranges::equal(this->args({id}), args);
  });
  if (found) return {*found};

  const uint32_t id = atom_count();
  AtomRecord record = wanted;
  if (!digit) record.root = id;
  record.args_first = static_cast<uint32_t>(args_.size());
  record.args_count = static_cast<uint32_t>(args.size());
  record.stale = digit && (atoms_[wanted.root].stale || monomials_[wanted.divisor.symbols].stale ||
                           monomials_[wanted.range.symbols].stale);
  if (digit) record.loops = atoms_[wanted.root].loops;
  for (const Form arg : args) {
    record.loops |= forms_[arg.id].loops;
    record.stale |= forms_[arg.id].stale;
  }
  args_.insert(args_.end(), args.begin(), args.end());
  atoms_.push_back(record);
  atom_table_.insert(hash.value(), id);
  const AtomId self{id};
  const MonomialId monomial = intern_monomial({&self, 1});
  atoms_[id].self = monomial;
  return self;
}

MonomialId FormStore::intern_monomial(std::span<const AtomId> sorted) {
  Hash hash;
  for (const AtomId atom : sorted) hash.mix(atom.id);
  const auto found =
      monomial_table_.find(hash.value(), [&](uint32_t id) { return std::ranges::equal(factors(id), sorted); });
  if (found) return *found;

  const auto id = static_cast<MonomialId>(monomials_.size());
  MonomialRecord record;
  record.first = static_cast<uint32_t>(factors_.size());
  record.count = static_cast<uint32_t>(sorted.size());
  std::array<AtomId, kMaxDegree> with_loops;
  std::array<AtomId, kMaxDegree> without;
  size_t loop_count = 0;
  size_t symbol_count = 0;
  for (const AtomId atom : sorted) {
    record.loops |= atoms_[atom.id].loops;
    if (atoms_[atom.id].loops != 0) {
      with_loops[loop_count++] = atom;
    } else {
      without[symbol_count++] = atom;
    }
  }
  factors_.insert(factors_.end(), sorted.begin(), sorted.end());
  describe(record);
  monomials_.push_back(record);
  monomial_table_.insert(hash.value(), id);
  MonomialId symbol_part = id;
  MonomialId loop_part = id;
  if (loop_count != sorted.size()) loop_part = intern_monomial({with_loops.data(), loop_count});
  if (symbol_count != sorted.size()) symbol_part = intern_monomial({without.data(), symbol_count});
  monomials_[id].symbol_part = symbol_part;
  monomials_[id].loop_part = loop_part;
  return id;
}

void FormStore::describe(MonomialRecord& record) const {
  record.bounds = {1, 1};
  record.stale = false;
  for (uint32_t i = 0; i < record.count; ++i) {
    const AtomRecord& atom = atoms_[factors_[record.first + i].id];
    record.bounds = i == 0 ? atom.bounds : interval_mul(record.bounds, atom.bounds);
    record.stale |= atom.stale;
    record.named |= atom.kind == AtomKind::kNamed;
  }
}

void FormStore::describe(FormRecord& record) const {
  record.bounds = {record.constant, record.constant};
  record.stale = false;
  record.asked = record.shown = 0;
  record.loops = 0;
  for (uint32_t i = 0; i < record.count; ++i) {
    const RawTerm& term = terms_[record.first + i];
    const MonomialRecord& monomial = monomials_[term.monomial];
    record.bounds = interval_add(record.bounds, interval_scale(term.factor, monomial.bounds));
    record.stale |= monomial.stale;
    record.loops |= monomial.loops;
  }
}

MonomialId FormStore::merged(MonomialId a, MonomialId b) {
  if (a == kNoMonomial || b == kNoMonomial) return kNoMonomial;
  const auto left = factors(a);
  const auto right = factors(b);
  if (left.size() + right.size() > kMaxDegree) return kNoMonomial;
  if (a > b) std::swap(a, b);
  CachedProduct& known = products_[(a * 31 + b) % products_.size()];
  if (known.a == a && known.b == b) return known.result;
  std::array<AtomId, kMaxDegree> merged;
  std::merge(left.begin(), left.end(), right.begin(), right.end(), merged.begin());
  known = {a, b, intern_monomial({merged.data(), left.size() + right.size()})};
  return known.result;
}

std::optional<MonomialId> FormStore::quotient(MonomialId a, MonomialId b) {
  if (b == kOne) return a;
  if (a == b) return kOne;
  if (!has_factors(a, b)) return std::nullopt;
  const auto left = factors(a);
  const auto right = factors(b);
  std::array<AtomId, kMaxDegree> rest;
  const auto end = std::set_difference(left.begin(), left.end(), right.begin(), right.end(), rest.begin());
  return intern_monomial({rest.begin(), end});
}

bool FormStore::has_factors(MonomialId a, MonomialId b) const {
  if (a == b || b == kOne) return true;
  const auto left = factors(a);
  const auto right = factors(b);
  if (right.size() >= left.size()) return false;
  if (right.size() == 1) return std::find(left.begin(), left.end(), right[0]) != left.end();
  return std::includes(left.begin(), left.end(), right.begin(), right.end());
}

MonomialId FormStore::common(MonomialId a, MonomialId b) {
  if (a == b) return a;
  if (a == kOne || b == kOne) return kOne;
  const auto left = factors(a);
  const auto right = factors(b);
  std::array<AtomId, kMaxDegree> both;
  const auto end = std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), both.begin());
  return intern_monomial({both.begin(), end});
}

Form FormStore::intern(Poly& poly) {
  const auto terms = poly.terms();
  for (size_t i = 1; i < terms.size(); ++i) {
    for (size_t j = i; j > 0 && terms[j].monomial < terms[j - 1].monomial; --j) std::swap(terms[j], terms[j - 1]);
  }
  Hash hash;
  hash.mix(static_cast<uint64_t>(poly.constant));
  for (const RawTerm& term : terms) {
    hash.mix(static_cast<uint64_t>(term.factor));
    hash.mix(term.monomial);
  }
  const auto found = form_table_.find(hash.value(), [&](uint32_t id) {
    return forms_[id].constant == poly.constant && std::ranges::equal(this->terms(forms_[id]), terms);
  });
  if (found) return made(*found);

  const auto id = static_cast<uint32_t>(forms_.size());
  FormRecord record;
  record.first = static_cast<uint32_t>(terms_.size());
  record.count = poly.count;
  record.constant = poly.constant;
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  describe(record);
  forms_.push_back(record);
  form_table_.insert(hash.value(), id);
  return made(id);
}

Form FormStore::intern_constant(int64_t value) {
  if (value == 0) return Form{};
  const bool is_small = value > 0 && value < static_cast<int64_t>(small_constants_.size());
  if (is_small && small_constants_[static_cast<size_t>(value)] != 0)
    return made(small_constants_[static_cast<size_t>(value)]);
  Poly poly;
  poly.constant = value;
  const Form result = intern(poly);
  if (is_small) small_constants_[static_cast<size_t>(value)] = result.id;
  return result;
}

Form FormStore::intern(Coefficient coefficient) {
  const bool is_monomial = coefficient.factor == 1 && coefficient.symbols != kOne && coefficient.symbols != kNoMonomial;
  if (is_monomial && monomials_[coefficient.symbols].form_plus_1 != 0)
    return made(monomials_[coefficient.symbols].form_plus_1 - 1);
  Poly poly;
  poly.add_term(coefficient.factor, coefficient.symbols);
  const Form result = intern(poly);
  if (is_monomial) monomials_[coefficient.symbols].form_plus_1 = result.id + 1;
  return result;
}

void FormStore::load(Poly& poly, Form form) const {
  const FormRecord& record = forms_[form.id];
  poly.constant = record.constant;
  poly.count = record.count;
  poly.failed = false;
  std::copy_n(terms_.begin() + record.first, record.count, poly.storage.begin());
}

void FormStore::add_product(Poly& poly, Coefficient a, MonomialId b) { poly.add_term(a.factor, product(a.symbols, b)); }

inline void FormStore::add_scaled(Poly& poly, RawTerm term, Coefficient coefficient, bool is_new) {
  int64_t scaled = 0;
  poly.failed |= __builtin_mul_overflow(term.factor, coefficient.factor, &scaled);
  const MonomialId monomial = product(coefficient.symbols, term.monomial);
  is_new ? poly.append(scaled, monomial) : poly.add_term(scaled, monomial);
}

void FormStore::add(Poly& poly, Form form, Coefficient coefficient) {
  // By index: a new monomial does not move terms, but this stays right if it ever does.
  const FormRecord& record = forms_[form.id];
  const uint32_t first = record.first, end = record.first + record.count;
  const bool is_new = poly.count == 0;
  add_scaled(poly, {record.constant, kOne}, coefficient, false);
  for (uint32_t i = first; i < end; ++i) add_scaled(poly, terms_[i], coefficient, is_new);
}

void FormStore::add(Poly& poly, const Poly& other, Coefficient coefficient) {
  const bool is_new = poly.count == 0;
  poly.failed |= other.failed;
  add_scaled(poly, {other.constant, kOne}, coefficient, false);
  for (const RawTerm& term : other.terms()) add_scaled(poly, term, coefficient, is_new);
}

Interval FormStore::bounds(const Poly& poly) const {
  Interval sum{poly.constant, poly.constant};
  for (const RawTerm& term : poly.terms()) {
    sum = interval_add(sum, interval_scale(term.factor, monomials_[term.monomial].bounds));
  }
  return sum;
}

std::optional<Coefficient> FormStore::as_coefficient(Form form) const {
  const FormRecord& record = forms_[form.id];
  if (record.count == 0 && record.constant != 0) return Coefficient{record.constant, kOne};
  if (record.count != 1 || record.constant != 0) return std::nullopt;
  return Coefficient{terms_[record.first].factor, terms_[record.first].monomial};
}

std::optional<bool> FormStore::known_nonneg(Form form, int way) const {
  const FormRecord& record = forms_[form.id];
  return (record.asked >> way & 1) != 0 ? std::optional((record.shown >> way & 1) != 0) : std::nullopt;
}

void FormStore::keep_nonneg(Form form, int way, bool shown) {
  FormRecord& record = forms_[form.id];
  record.asked = static_cast<uint16_t>(record.asked | 1 << way);
  record.shown = static_cast<uint16_t>(record.shown | (shown ? 1 : 0) << way);
}

void FormStore::keep_rebuilt(Form form, int way, Form result) {
  if (rebuilt_.size() <= form.id) rebuilt_.resize(form.id + 1);
  rebuilt_[form.id] = {way, result};
}

void FormStore::limit(AtomId atom, int64_t upper) {
  AtomRecord& record = atoms_[atom.id];
  record.bounds.hi = std::min(record.bounds.hi, upper);
  // Other monomials with this atom keep bounds that are wider, but true.
  monomials_[record.self].bounds = record.bounds;
}

void FormStore::refresh() {
  rebuilt_.clear();
  for (MonomialRecord& record : monomials_) describe(record);
  for (FormRecord& record : forms_) describe(record);
}

}  // namespace fusebox
