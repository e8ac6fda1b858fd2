// Evaluates forms at many points at once. It uses only their documented structure: terms, factors, atoms. An atom is
// evaluated once, even if several forms contain it.
//
//   Batch batch(algebra);
//   batch.start(points, symbols);  batch.loop(0)[p] = …;   batch.of(form)[p]
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz/index_laws/chain.h"
#include "ir/table/error.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox::index_laws {

class Batch {
 public:
  using Row = std::vector<int64_t>;

  // Forgets all rows and keeps their memory for new ones.
  void start(IndexAlgebra& algebra, size_t points, size_t loops, const Row& symbols) {
    algebra_ = &algebra;
    points_ = points;
    symbols_ = &symbols;
    used_ = 0;
    forms_.clear();
    atoms_.clear();
    loops_.clear();
    for (size_t i = 0; i < loops; ++i) loops_.push_back(new_row());
  }
  Row& loop(size_t i) { return rows_[loops_[i]]; }

  // Valid until the next call of `of`.
  const Row& of(Form form) { return rows_[row_of(form)]; }

 private:
  size_t new_row() {
    if (used_ == rows_.size()) rows_.emplace_back();
    rows_[used_].assign(points_, 0);
    return used_++;
  }

  size_t row_of(Form form) {
    for (const auto& [known, row] : forms_)
      if (known == form) return row;
    const size_t result = new_row();
    std::fill(rows_[result].begin(), rows_[result].end(), algebra_->constant_part(form));
    for (const TermView& term : algebra_->terms(form)) {
      if (term.factors.size() == 1) {
        const size_t factor = row_of(term.factors[0]);
        for (size_t p = 0; p < points_; ++p) rows_[result][p] += term.coefficient * rows_[factor][p];
        continue;
      }
      const size_t product = new_row();
      std::fill(rows_[product].begin(), rows_[product].end(), term.coefficient);
      for (const AtomId f : term.factors) {
        const size_t factor = row_of(f);
        for (size_t p = 0; p < points_; ++p) rows_[product][p] *= rows_[factor][p];
      }
      for (size_t p = 0; p < points_; ++p) rows_[result][p] += rows_[product][p];
    }
    forms_.emplace_back(form, result);
    return result;
  }

  size_t row_of(AtomId atom) {
    for (const auto& [known, row] : atoms_)
      if (known == atom) return row;
    const size_t result = compute(algebra_->atom(atom));
    atoms_.emplace_back(atom, result);
    return result;
  }

  template <class F>
  size_t combine(size_t a, size_t b, F f) {
    const size_t result = new_row();
    for (size_t p = 0; p < points_; ++p) rows_[result][p] = f(rows_[a][p], rows_[b][p]);
    return result;
  }

  size_t compute(const AtomView& atom) {
    switch (atom.kind) {
      case AtomKind::kSymbol: {
        const size_t result = new_row();
        std::fill(rows_[result].begin(), rows_[result].end(), symbols_->at(static_cast<size_t>(atom.id)));
        return result;
      }
      case AtomKind::kLoop:
        return loops_.at(static_cast<size_t>(atom.id));
      case AtomKind::kDigit: {
        const size_t quotient = combine(row_of(atom.whole), row_of(atom.divisor), floor_div);
        return atom.range ? combine(quotient, row_of(*atom.range), floor_mod) : quotient;
      }
      case AtomKind::kNamed:
        return row_of(atom.args[0]);
      case AtomKind::kXor: {
        size_t result = row_of(atom.args[0]);
        for (size_t i = 1; i < atom.args.size(); ++i)
          result = combine(result, row_of(atom.args[i]), [](int64_t a, int64_t b) { return a ^ b; });
        return result;
      }
      case AtomKind::kQuotient:
        return combine(row_of(atom.args[0]), row_of(atom.args[1]), euclidean_div);
      case AtomKind::kRemainder:
        return combine(row_of(atom.args[0]), row_of(atom.args[1]),
                       [](int64_t a, int64_t b) { return b == 0 ? 0 : a - b * euclidean_div(a, b); });
      case AtomKind::kMin:
        return combine(row_of(atom.args[0]), row_of(atom.args[1]), [](int64_t a, int64_t b) { return std::min(a, b); });
      case AtomKind::kMax:
        return combine(row_of(atom.args[0]), row_of(atom.args[1]), [](int64_t a, int64_t b) { return std::max(a, b); });
      // Left as they are where multiplied out they would have too many terms.
      case AtomKind::kSum:
        return combine(row_of(atom.args[0]), row_of(atom.args[1]), [](int64_t a, int64_t b) { return a + b; });
      case AtomKind::kProduct:
        return combine(row_of(atom.args[0]), row_of(atom.args[1]), [](int64_t a, int64_t b) { return a * b; });
    }
    throw Error(ErrorCode::kInternal, "an atom of an unknown kind");
  }

  static int64_t euclidean_div(int64_t a, int64_t b) { return b < 0 ? -floor_div(a, -b) : floor_div(a, b); }

  IndexAlgebra* algebra_ = nullptr;
  size_t points_ = 0;
  const Row* symbols_ = nullptr;
  std::vector<Row> rows_;
  size_t used_ = 0;
  std::vector<size_t> loops_;
  std::vector<std::pair<Form, size_t>> forms_;
  std::vector<std::pair<AtomId, size_t>> atoms_;
};

}  // namespace fusebox::index_laws
