// Mutations of cases. A mutation is a record with all its parameters, so a lineage, applied to the case of its seed,
// gives the same case. Applying a record does not depend on how it was drawn.
//
// Invariants: a mutated case verifies, binds its inputs and compiles, or there is none; the original case is unchanged;
// a mutation appends its record to the lineage.
//
//   auto c = mutate(random, from, other, {});                      // a splice takes steps from `other`
//   auto same = apply_mutation(from, c->lineage.back());           // without compiling it
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "fuzz/generate/case.h"

namespace fusebox::fuzz {

enum class MutationKind : uint8_t {
#define FUSEBOX_MUTATION(name, text, summary) name,
#include "fuzz/mutate/mutation_table.inc"
#undef FUSEBOX_MUTATION
};
struct MutationRow {
  MutationKind kind;
  std::string_view text;
  std::string_view summary;
};
std::span<const MutationRow> mutation_rows();

struct MutateOptions {
  size_t tries = 4;      // draws until one compiles
  Defects defects = {};  // for compiling
  // Called before each compilation; false returns the case as it is. May be empty.
  std::function<bool()> compiles = {};
};

// Makes one to three mutations and keeps each only if the case stays valid. Returns nothing if none was kept.
std::optional<Case> mutate(RandomSource& random, const Case& from, const Case& other, const MutateOptions& options);

// Draws a mutation of that kind; nothing if the case has no place for it.
std::optional<Mutation> draw_mutation(RandomSource& random, MutationKind kind, const Case& from, const Case& other);

// Returns the edited case, not compiled, with the record appended to its lineage; nothing if the record does not fit
// the case. Throws kUnknownName for a record of an unknown kind.
std::optional<Case> apply_mutation(const Case& from, const Mutation& mutation);

}  // namespace fusebox::fuzz
