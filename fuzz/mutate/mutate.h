// Mutations of cases. Each is a record with all that it needs, so that a lineage applied to the case of its seed gives
// the same case again; applying one knows nothing of how it was drawn.
//
// Invariants: what comes back verifies, binds its inputs and compiles, or nothing comes back; the case that is mutated
// stays as it is; a mutation adds its record to the lineage.
//
//   auto c = mutate(random, from, other, {});                      // `other`: what a splice takes steps from
//   auto same = apply_mutation(from, c->lineage.back());           // without compiling it
#pragma once

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
  Defects defects = {};  // of the compilation
};

// One to three mutations, each kept only if the case is still valid; nothing where none was.
std::optional<Case> mutate(RandomSource& random, const Case& from, const Case& other, const MutateOptions& options);

// Draws one of a kind; nothing where the case has nothing for it.
std::optional<Mutation> draw_mutation(RandomSource& random, MutationKind kind, const Case& from, const Case& other);

// The case with the edit, not compiled, its lineage one longer; nothing where the record does not fit the case. Throws
// kUnknownName for a record of no kind.
std::optional<Case> apply_mutation(const Case& from, const Mutation& mutation);

}  // namespace fusebox::fuzz
