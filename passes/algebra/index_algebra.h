// The index algebra computes with integers over the loop variables of one nest. Indices, predicates and vectorization
// are read from its normal form. It is pure: it depends on nothing, allocates nothing per operation once warm, and has
// no order that depends on an address.
//
// Meaning. Every form is a function of the loop variables and the symbols. A *point* gives each declared loop a value
// in [0, extent) and each symbol a value within its bounds, such that every assumption holds. Equal forms are equal at
// every point. If a prove function returns true, its claim holds at every point; false means only "not shown". Division
// is Euclidean: the remainder is never negative. Division by 0 gives the quotient 0 and the remainder 0.
//
// A point has a value for every loop, so an extent that is a factor of a declared loop's extent is at least 1 at every point.
// Declare the symbols, assumptions and loops of a nest before computing with them: a later fact does not simplify forms that exist.
//
// A constant that does not fit in 64 bits makes the result an opaque atom (kSum, kProduct, kQuotient, …), never a wrong value.
//
// Example: a{n} is split by 128 (inner) into o and t. The check `a < n` is needed unless 128 divides n.
//
//   IndexAlgebra algebra;
//   Form n = algebra.declare_symbol(0, "n");
//   Form width = algebra.constant(128);
//   Form o = algebra.declare_loop(0, "o", algebra.ceil_div(n, width));
//   Form t = algebra.declare_loop(1, "t", width);
//   Form a = algebra.add(algebra.mul(o, width), t);          // 128*o + t
//   algebra.prove_less(a, n);                                // false: the last block has holes
//   algebra.mod(a, width) == t;                              // true
//   algebra.floor_div(a, algebra.constant(64));              // 2*o + t / 64
//
// Extents. A divisor or factor that is not a product of symbols and a constant (n + 1, say) is used as one symbol. If
// you multiply with such an extent, make it a symbol yourself with symbol_of(extent); then the products can be divided
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/table/defect.h"
#include "passes/algebra/index_algebra_store.h"
#include "passes/algebra/index_form.h"
#include "passes/algebra/rebuilt_atoms.h"

namespace fusebox {

struct SymbolRange {
  int64_t lower = 0;
  std::optional<int64_t> upper;  ///< inclusive
};

/// Replaces loops and symbols, named by the caller's ids, by forms.
struct FormSubstitution {
  std::vector<std::pair<int, Form>> loops;
  std::vector<std::pair<int, Form>> symbols;
};

class IndexAlgebra {
 public:
  explicit IndexAlgebra(const Defects& defects = {}) : defects_(defects) {}
  /// Forgets everything but keeps its memory, for the next nest.
  void clear();

  // -- Declarations. The caller chooses ids: small non-negative ints. Declaring an id again returns the first.
  Form declare_symbol(int id, std::string_view name, SymbolRange range = {});
  /// The loop takes every value in [0, extent). The extent must not contain loops.
  Form declare_loop(int id, std::string_view name, Form extent);
  Form symbol(int id);
  Form loop(int id) const;
  Form loop_extent(int id) const;
  bool has_symbol(int id) const { return symbol_index(id) < symbol_ids_.size(); }
  bool has_loop(int id) const;

  /// Assumes that divisor divides value at every point. The value must not contain loops. A divisor that is not a
  /// product of symbols and a constant is ignored.
  void assume_divides(Form divisor, Form value, std::string_view reason);
  /// Assumes a <= b at every point. The forms may contain loops (a check that guards the nest).
  void assume_le(Form a, Form b, std::string_view reason);

  // -- Arithmetic
  Form constant(int64_t value);
  Form add(Form a, Form b);
  Form sub(Form a, Form b);
  Form neg(Form a);
  Form mul(Form a, Form b);
  Form mul(Form a, int64_t factor);
  Form floor_div(Form a, Form b);
  Form mod(Form a, Form b);
  /// Quotient and remainder together, at the cost of one.
  DivMod div_mod(Form a, Form b);
  /// (a + b - 1) div b for b > 0, and 0 for b = 0. Meant for extents.
  Form ceil_div(Form a, Form b);
  Form bit_xor(Form a, Form b);
  /// (a + b) mod extent: the cyclic swizzle. Its inverse is cyclic(a, neg(b), extent).
  Form cyclic(Form a, Form b, Form extent);
  Form min(Form a, Form b);
  Form max(Form a, Form b);
  /// `value` (no loops) as a constant times one factor. A product of symbols is that already; any other value becomes a
  /// symbol of its own.
  Form symbol_of(Form value);

  // -- Questions. `true` means proved, `false` means "not shown".
  bool equal(Form a, Form b);
  bool prove_less(Form a, Form b);
  bool prove_le(Form a, Form b);
  bool prove_nonneg(Form a);
  /// Proves a >= 0 at the points where all of `given` are nonnegative: for a check that guards only a part of the nest.
  /// It tries multiples of each: for integers, k·a + k - 1 >= b >= 0 gives a >= 0.
  bool prove_nonneg(Form a, std::span<const Form> given);
  /// A form that is equal at the points where all of `given` are nonnegative, and may have fewer quotients: n div 8 is 0
  /// where 7 - n >= 0.
  Form under(Form value, std::span<const Form> given);
  /// Whether divisor (no loops) divides value.
  bool divides(Form divisor, Form value);
  bool divides(int64_t divisor, Form value);
  /// The largest constant that is known to divide the value; 0 for the form 0.
  int64_t content(Form value) const;
  /// Whether the normal form mentions the loop. False proves that the value does not vary with it.
  bool depends_on(Form value, int loop_id) const;
  bool has_loops(Form value) const;
  bool is_constant(Form value) const;
  std::optional<int64_t> constant_value(Form value) const;
  IntBounds int_bounds(Form value) const;
  FormBounds bounds(Form value);
  /// value = coefficient × loop + rest, if both can be made independent of the loop.
  std::optional<LinearForm> linear_in(Form value, int loop_id);
  /// The reasons of the assumptions that the last answer rests on, in the order of the assumptions. An assumption that
  /// simplifies forms (a symbol's bound or divisor) is always included, because any form may rest on it.
  std::vector<std::string> last_reasons() const;
  /// The same for all answers since the algebra was made or cleared.
  std::vector<std::string> all_reasons() const;

  // -- Use
  /// Rebuilds the form with loops and symbols replaced. A replacement must stay in the range of its loop or within the
  /// bounds of its symbol, because simplification has relied on both.
  Form substitute(Form value, const FormSubstitution& substitution);
  /// The value at a point, whose loops and symbols are indexed by the caller's ids. None if an intermediate value
  /// leaves 64 bits, or if a loop or symbol of the form has no value.
  std::optional<int64_t> evaluate(Form value, std::span<const int64_t> loops, std::span<const int64_t> symbols) const;

  // -- Structure, for turning a form into code. The order of terms and factors depends only on the form's structure.
  int64_t constant_part(Form value) const;
  std::vector<TermView> terms(Form value);
  AtomView atom(AtomId id);
  /// The atom as a form.
  Form form_of(AtomId id);
  std::string to_string(Form value);

 private:
  struct Symbol {
    std::string name;
    AtomId atom;
  };
  struct Loop {
    std::string name;
    AtomId atom;
    Form value;  ///< 0 if the loop has at most one value
    Form extent;
  };
  /// nonneg >= 0, or, with a divisor, divisor | value. If `built_in`, bounds or symbols have it, so all answers use it.
  struct Fact {
    Form nonneg;
    std::optional<Coefficient> divisor;
    Form value;
    std::string reason;
    bool built_in = false;
    bool used = false;
    bool used_last = false;
  };
  /// A term split for division: coefficient × rest. If one atom can be cut, cut_coefficient × cut_atom is the same
  /// term.
  struct TermParts {
    Coefficient coefficient;
    MonomialId rest = kOne;
    Coefficient cut_coefficient;
    std::optional<AtomId> cut_atom;
  };
  struct CachedDigit {
    AtomId base;
    Coefficient divisor;
    Coefficient range;
    Form result;
  };
  struct CachedDivision {
    Form value;
    Form divisor;
    bool canonical = false;
    DivMod result;
  };
  size_t symbol_index(int id) const;  ///< symbols_.size() if there is none

  // index_algebra.cc: normal form
  Form finish(Poly& poly, AtomKind opaque_kind, Form a, Form b);
  Form opaque(AtomKind kind, std::span<const Form> args, Interval bounds);
  void normalize(Poly& poly);
  bool combine(Poly& poly, uint32_t i, uint32_t j);
  bool fuse(Poly& poly, RawTerm low, AtomId low_atom, RawTerm high, AtomId high_atom);
  bool refine(Poly& poly, RawTerm a, AtomId a_atom, RawTerm b, AtomId b_atom);
  bool cut(Poly& poly, RawTerm term, AtomId atom, Coefficient at);
  Coefficient divisor_of(AtomId atom) const;
  Coefficient range_of(AtomId atom) const;
  /// The whole value of an atom. A named atom has the value that it names.
  Form value_of(AtomId atom);
  /// (base div divisor) mod range, simplified as far as base's bounds allow.
  Form digit(AtomId base, Coefficient divisor, Coefficient range);
  Interval digit_bounds(const AtomRecord& digit) const;
  Form make_digit(AtomId base, Coefficient divisor, Coefficient range);
  /// The same, but a base that is a named form is divided anew.
  Form fused_digit(AtomId base, Coefficient divisor, Coefficient range);

  // index_algebra_divide.cc
  std::optional<Coefficient> exact_quotient(Coefficient a, Coefficient b);
  Coefficient common_divisor(Coefficient a, Coefficient b);
  std::optional<Coefficient> product(Coefficient a, Coefficient b);
  bool is_positive(Coefficient value) const;
  TermParts split(const RawTerm& term);
  DivMod divide(Form value, Form divisor);
  void divide(const Poly& value, Coefficient e, Poly& quotient, Poly& remainder, int depth);
  void pull_multiples(Poly& rest, Coefficient e, Poly& quotient);
  bool expand_named(Poly& rest, Coefficient e);
  bool two_valued(const Poly& rest, Coefficient e, Poly& quotient, Poly& remainder, int depth);
  bool settle(Poly& rest, Coefficient e, Poly& quotient);
  bool cut_digits(Poly& rest, Coefficient e, Poly& quotient);
  bool split_common(const Poly& rest, Coefficient e, Poly& quotient, Poly& remainder, int depth);
  bool split_at(const Poly& rest, Coefficient g, Poly& high, Poly& low);
  bool flatten_quotient(const Poly& rest, Coefficient e, Poly& quotient, Poly& remainder, int depth);
  bool expand_remainders(Poly& rest, Coefficient e, Poly& quotient);
  bool reduce_coefficients(Poly& rest, Coefficient e, Poly& quotient);
  void leave_opaque(Poly& rest, Coefficient e, Poly& quotient, Poly& remainder);

  // index_algebra_prove.cc
  bool nonneg(Form value);
  bool nonneg_with_facts(Form value);
  bool nonneg_symbols(const Poly& value, int depth);
  bool nonneg_shifted(const Poly& value);
  bool subtract_fact(const Poly& value, const Poly& fact, std::optional<MonomialId> target, int depth);
  std::optional<MonomialId> must_vanish(const Poly& value) const;
  std::optional<Form> extreme(Form value, bool upper);
  std::optional<Form> atom_extreme(AtomId atom, bool upper);
  int64_t ratio(Form a, Form b) const;
  Form under(Form value, std::span<const Form> given, int depth);
  Form under(AtomId atom, std::span<const Form> given, int depth);
  bool mentions(Form value, AtomId loop) const;
  bool same_by_floors(Form a, Form b);
  bool is_zero_at_every_point(Form value);
  void add_floors(Poly& poly, Form value, Coefficient coefficient, int depth);

  // index_algebra_view.cc
  int compare(AtomId a, AtomId b);
  int compare(Form a, Form b);
  std::vector<Form> ordered_args(AtomId atom);
  int compare(MonomialId a, MonomialId b);
  int compare_coefficients(Coefficient a, Coefficient b);
  std::string text_of(AtomId atom, bool alone);
  std::optional<int64_t> evaluate(AtomId atom, std::span<const int64_t> loops, std::span<const int64_t> symbols) const;
  std::optional<int64_t> evaluate(Coefficient value, std::span<const int64_t> loops,
                                  std::span<const int64_t> symbols) const;

  // index_algebra_facts.cc
  bool require_at_least(Form value, int64_t lower);
  bool require_at_least(const RawTerm& term, int64_t lower);
  bool require_quotient(std::span<const RawTerm> terms, std::span<const AtomId> common);
  bool raise_lower(AtomId atom, int64_t lower);
  void learnt();
  bool refresh(AtomId atom);
  bool refresh(Loop& loop);
  bool build_in(const Fact& fact);
  bool depends_on(AtomId atom, AtomId symbol) const;
  bool depends_on(Form value, AtomId symbol) const;
  void use_fact(size_t index);
  void start_question();
  /// The form as it would be made now.
  Form resolve(Form value) { return store_.given_form(value).stale && !resolving_ ? rebuild_stale(value) : value; }
  Form rebuild_stale(Form value);
  Form rebuild(Form value, const FormSubstitution* substitution);
  Form rebuild(AtomId atom, const FormSubstitution* substitution);

  FormStore store_;
  std::vector<Symbol> symbols_;
  std::vector<Loop> loops_;
  std::vector<int> symbol_ids_;       ///< the caller's id of symbols_[i]; a nest has few
  std::vector<int> loop_ids_;         ///< the caller's id of loops_[i]
  std::vector<uint32_t> loop_index_;  ///< by the caller's id, plus 1
  std::vector<Fact> facts_;
  std::vector<std::pair<AtomId, Form>> replaced_;  ///< symbols that divisibility facts replaced
  std::vector<CachedDigit> digits_;
  IdTable digit_table_;
  std::vector<CachedDivision> divisions_;
  IdTable division_table_;
  RebuiltAtoms rebuilt_;
  bool resolving_ = false;    ///< a stale form is being rebuilt, inner parts first
  bool canonical_ = false;    ///< divisions use the spelling that equal() compares
  bool left_opaque_ = false;  ///< the current division ended in an opaque atom
  int depth_ = 0;             ///< nesting of simplifications
  int effort_ = 0;            ///< steps that the current proof may still take
  uint64_t proofs_ = 0;       ///< that were begun
  Defects defects_;           ///< seeded
};

}  // namespace fusebox
