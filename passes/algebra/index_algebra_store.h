// The arena behind IndexAlgebra. It keeps each atom, monomial and form once, under an id, with its int bounds. Its only
// simplification is adding equal terms; index_algebra*.cc build the others on top.
//
// Invariants. Monomial 0 is the empty product, and form 0 is the constant 0. A monomial's atoms are sorted. A form's
// terms are sorted by monomial, and their coefficients are not 0. An id is never reused before clear(). A Poly is a
// form under construction, on the stack. It has `failed` if a constant left 64 bits or if it grew too long; its value
// then means nothing.
//
// Example: `128*o + t` is { constant 0, terms {128, [o]}, {1, [t]} } over monomials [o] and [t], each of one atom.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "passes/algebra/index_form.h"

namespace fusebox {

using MonomialId = uint32_t;

inline constexpr MonomialId kOne = 0;
inline constexpr MonomialId kNoMonomial = std::numeric_limits<uint32_t>::max();
inline constexpr uint32_t kMaxTerms = 48;
inline constexpr uint32_t kMaxDegree = 12;
inline constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();

/// [lo, hi]. The extreme values of int64 mean that there is no bound.
struct Interval {
  int64_t lo = kMinusInfinity;
  int64_t hi = kInfinity;
  bool operator==(const Interval&) const = default;
};

Interval interval_mul(Interval a, Interval b);
/// The floor of the quotient by a positive constant.
Interval interval_div(Interval a, int64_t divisor);

/// Euclidean for a positive divisor.
constexpr int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t floor_remainder(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

/// factor × product of atoms.
struct Coefficient {
  int64_t factor = 1;
  MonomialId symbols = kOne;
  bool operator==(const Coefficient&) const = default;
};

inline constexpr Coefficient kNoRange = {0, kOne};

struct RawTerm {
  int64_t factor;
  MonomialId monomial;
  bool operator==(const RawTerm&) const = default;
};

struct Poly {
  int64_t constant = 0;
  uint32_t count = 0;
  bool failed = false;
  std::array<RawTerm, kMaxTerms> storage;

  Poly() {}  // leaves the storage as it is
  Poly(const Poly& other) { *this = other; }
  Poly& operator=(const Poly& other);

  std::span<RawTerm> terms() { return {storage.data(), count}; }
  std::span<const RawTerm> terms() const { return {storage.data(), count}; }
  void clear() { constant = 0, count = 0, failed = false; }
  void add_constant(int64_t value);
  void add_term(int64_t factor, MonomialId monomial);
  /// Adds a term whose monomial the poly does not have yet.
  void append(int64_t factor, MonomialId monomial) {
    if (factor == 0) return;
    if (monomial == kNoMonomial || count == kMaxTerms)
      failed = true;
    else
      storage[count++] = {factor, monomial};
  }
  bool is_constant() const { return count == 0; }
};

/// A kDigit has a root (its base), a divisor and a range. A kSymbol or kLoop has an index. The other kinds have args.
/// Every atom except a digit is its own root.
struct AtomRecord {
  AtomKind kind = AtomKind::kSymbol;
  bool stale = false;  ///< a part was replaced, so it would be made differently now
  bool keep = false;   ///< its parts never make it stale
  bool exact = false;  ///< a digit without remainder, by a divisibility fact
  uint32_t index = 0;
  uint32_t root = 0;
  MonomialId self = kNoMonomial;  ///< the monomial of this atom alone
  Coefficient divisor;
  Coefficient range = kNoRange;
  uint32_t args_first = 0;
  uint32_t args_count = 0;
  uint64_t loops = 0;
  Interval bounds;
};

struct MonomialRecord {
  uint32_t first = 0;
  uint32_t count = 0;
  MonomialId symbol_part = kOne;  ///< the factors without loops
  MonomialId loop_part = kOne;    ///< the factors with loops
  bool stale = false;
  bool named = false;        ///< has a named factor
  uint32_t form_plus_1 = 0;  ///< the form that is this monomial, once it is made
  uint64_t loops = 0;
  Interval bounds;
};

struct FormRecord {
  uint32_t first = 0;
  uint32_t count = 0;
  int64_t constant = 0;
  bool stale = false;
  uint16_t asked = 0;  ///< one bit for each way of asking (IndexAlgebra::nonneg): whether it was asked
  uint16_t shown = 0;  ///< one bit for each way of asking: whether it was shown to be nonnegative
  uint64_t loops = 0;
  Interval bounds;
};

/// Finds ids by hash, with open addressing.
class IdTable {
 public:
  void clear();
  template <typename Equal>
  std::optional<uint32_t> find(uint32_t hash, Equal equal) const {
    if (slots_.empty()) return std::nullopt;
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].id_plus_1 == 0) return std::nullopt;
      if (slots_[i].hash == hash && equal(slots_[i].id_plus_1 - 1)) return slots_[i].id_plus_1 - 1;
    }
  }
  void insert(uint32_t hash, uint32_t id);

 private:
  struct Slot {  // free: all zero
    uint32_t hash = 0;
    uint32_t id_plus_1 = 0;
  };
  void put(Slot slot);
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class FormStore {
 public:
  FormStore();
  void clear();

  const AtomRecord& atom(AtomId id) const { return atoms_[id.id]; }
  AtomRecord& atom(AtomId id) { return atoms_[id.id]; }
  const MonomialRecord& monomial(MonomialId id) const { return monomials_[id]; }
  const FormRecord& form(Form id) const { return forms_[id.id]; }
  /// The same for a form that comes from outside: throws kInternal if another algebra made it, or if it was made before
  /// clear().
  const FormRecord& given_form(Form id) const {
    if (id.owner != owner_ && id.id != 0) [[unlikely]]
      refuse_foreign();
    return forms_[id.id];
  }
  uint32_t atom_count() const { return static_cast<uint32_t>(atoms_.size()); }
  std::span<const AtomId> factors(MonomialId id) const {
    return {factors_.data() + monomials_[id].first, monomials_[id].count};
  }
  std::span<const RawTerm> terms(Form id) const { return terms(forms_[id.id]); }
  std::span<const Form> args(AtomId id) const {
    return {args_.data() + atoms_[id.id].args_first, atoms_[id.id].args_count};
  }

  /// The atom with these members (kind, index, root, divisor, range) and arguments. A new atom gets its `loops` filled
  /// in and its `bounds` as given.
  AtomId intern_atom(const AtomRecord& wanted, std::span<const Form> args);
  MonomialId monomial_of(AtomId atom) const { return atoms_[atom.id].self; }
  /// The product of two monomials; kNoMonomial if it has too many factors.
  MonomialId product(MonomialId a, MonomialId b) {
    if (a == kOne) return b;
    return b == kOne ? a : merged(a, b);
  }
  /// a without the factors of b; none unless a has them all.
  std::optional<MonomialId> quotient(MonomialId a, MonomialId b);
  /// Whether a has all factors of b.
  bool has_factors(MonomialId a, MonomialId b) const;
  MonomialId common(MonomialId a, MonomialId b);
  /// Sorts the terms and returns the form. The poly must not have failed.
  Form intern(Poly& poly);
  Form intern_constant(int64_t value);
  Form intern(Coefficient coefficient);

  void load(Poly& poly, Form form) const;
  /// poly += coefficient × form
  void add(Poly& poly, Form form, Coefficient coefficient = {});
  void add(Poly& poly, const Poly& other, Coefficient coefficient = {});
  void add_product(Poly& poly, Coefficient a, MonomialId b);
  Interval bounds(const Poly& poly) const;
  Interval bounds(MonomialId id) const { return monomials_[id].bounds; }

  /// The form as factor × monomial, if it is one. 0 is not one.
  std::optional<Coefficient> as_coefficient(Form form) const;
  /// Whether the form was shown to be nonnegative. None if nobody has asked in this way, one of 16, since the last
  /// refresh.
  std::optional<bool> known_nonneg(Form form, int way) const;
  void keep_nonneg(Form form, int way, bool shown);
  /// What a stale form was rebuilt to, in this way, since the last refresh.
  std::optional<Form> known_rebuilt(Form form, int way) const {
    if (form.id >= rebuilt_.size() || rebuilt_[form.id].way != way) return std::nullopt;
    return rebuilt_[form.id].result;
  }
  void keep_rebuilt(Form form, int way, Form result);
  /// Lowers the upper bound of an atom.
  void limit(AtomId atom, int64_t upper);
  /// Computes bounds and staleness again after atoms have changed.
  void refresh();

 private:
  [[noreturn]] static void refuse_foreign();
  std::span<const RawTerm> terms(const FormRecord& record) const {
    return {terms_.data() + record.first, record.count};
  }
  Form made(uint32_t id) const { return {id, id == 0 ? 0 : owner_}; }
  MonomialId intern_monomial(std::span<const AtomId> sorted);
  MonomialId merged(MonomialId a, MonomialId b);
  /// `is_new` says that no term of the poly has the product's monomial.
  void add_scaled(Poly& poly, RawTerm term, Coefficient coefficient, bool is_new);
  void describe(MonomialRecord& record) const;
  void describe(FormRecord& record) const;

  uint32_t owner_ = 0;  // of the forms made since clear()
  std::vector<AtomRecord> atoms_;
  std::vector<MonomialRecord> monomials_;
  std::vector<FormRecord> forms_;
  std::vector<AtomId> factors_;
  std::vector<RawTerm> terms_;
  std::vector<Form> args_;
  struct Rebuilt {
    int way = -1;
    Form result;
  };
  std::vector<Rebuilt> rebuilt_;  // by form
  IdTable atom_table_;
  IdTable monomial_table_;
  IdTable form_table_;
  struct CachedProduct {
    MonomialId a = kOne;
    MonomialId b = kOne;
    MonomialId result = kOne;
  };
  std::array<CachedProduct, 64> products_;
  std::array<uint32_t, 64> small_constants_;  // their forms, once they are made: 0 is only that of the constant 0
};

}  // namespace fusebox
