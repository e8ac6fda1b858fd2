// What atoms became while one form is rebuilt. A form is a DAG: a clamped bound of a slice reads the same size several times, and
// the bound of a slice of that slice reads the first one several times. Rebuilding each of these places anew would take a time
// that doubles with each slice.
//
// Invariant: a result stands only while what it depends on is the same: the facts, and the way of rebuilding.
//
//   const RebuiltAtoms::Scope scope(rebuilt, {.substitution = s, .depth = depth_, …});
//   if (const Form* known = rebuilt.find(atom)) …   else rebuilt.keep(atom, made);
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "passes/algebra/index_form.h"

namespace fusebox {

struct FormSubstitution;

class RebuiltAtoms {
 public:
  struct Way {
    const FormSubstitution* substitution = nullptr;
    int depth = 0;   // of nested simplifications
    int effort = 0;  // that a proof has left
    bool is_canonical = false;
    bool is_resolving = false;
    bool operator==(const Way&) const = default;
  };

  // The rebuilding of one form. One that goes another way than the one around it begins without results.
  class Scope {
   public:
    Scope(RebuiltAtoms& all, const Way& way)
        : all_(all), before_(all.way_), begin_(all.begin_), is_new_(all.way_ != way) {
      if (!is_new_) return;
      all_.begin_ = all_.known_.size();
      all_.way_ = way;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (!is_new_) return;
      if (all_.begin_ < all_.known_.size()) all_.known_.resize(all_.begin_);
      all_.begin_ = begin_;
      all_.way_ = before_;
    }

   private:
    RebuiltAtoms& all_;
    const std::optional<Way> before_;
    const size_t begin_;
    const bool is_new_;
  };

  // Null if this scope has not rebuilt the atom.
  const Form* find(AtomId atom) const {
    for (size_t i = known_.size(); i > begin_; --i)
      if (known_[i - 1].first == atom) return &known_[i - 1].second;
    return nullptr;
  }
  void keep(AtomId atom, Form result) { known_.emplace_back(atom, result); }
  // A fact was learnt. Scopes that are open remember no more than what they keep from now on.
  void forget() { known_.clear(); }

 private:
  std::optional<Way> way_;  // of the innermost scope; none: no form is being rebuilt
  size_t begin_ = 0;        // of its results
  std::vector<std::pair<AtomId, Form>> known_;
};

}  // namespace fusebox
