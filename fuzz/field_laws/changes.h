// Enumerates every change of a single member of a value. The laws of laws.h are checked for each of them.
// ir/module/fields.h and serde/fields.h list the members; a member's type tells how it changes.
//
// Changes by type. An integer, a float or a byte goes to its neighbours; a flag flips. An enumerator goes to its
// neighbours, an op or a step to others of its format. An id goes to its neighbours or to none, and none becomes an id.
// A text gains a letter, becomes empty or becomes another name. A list loses, repeats or exchanges elements; an empty
// one gains some. An attribute appears, disappears or gets another value. An empty list of a tensor is written out as
// its default, or differently.
//
// Invariants: the same value has the same changes on every machine. A change makes the value differ in one member. The
// result need not be valid.
//
//   const ChangeCounts counts = count_changes(g, {});
//   Graph other = g;
//   const FieldChange c = make_change(other, kind, 0, {});   // kind < field_kinds().size(), counts[kind] > 0
//   c.place == "transforms[3].inner_split"
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/base/random_source.h"
#include "ir/module/fields.h"
#include "serde/fields.h"

namespace fusebox::fuzz {

// One member of one struct.
struct FieldKind {
  std::string_view owner;
  std::string_view member;
  FieldUse use;
  bool is_table = false;  // of tables, whose rows have changes of their own: it has none
};
std::span<const FieldKind> field_kinds();
std::string text(const FieldKind& kind);  // `Transform.inner_split`

struct FieldChange {
  size_t kind = 0;
  std::string place;
  std::string_view what;  // `next`, `dropped` …
  FieldUse use;           // the use of the member, combined with those of the members around it
};
std::string text(const FieldChange& change);

// The number of changes of each kind.
using ChangeCounts = std::vector<size_t>;

// The names that a text may change to.
using ChangeNames = std::vector<std::string>;
ChangeNames names_of(const Graph& g);

// T: Graph, StepList, Segmentation, InputSpecs, Bundle.
template <class T>
ChangeCounts count_changes(const T& value, const ChangeNames& names);
template <class T>
FieldChange make_change(T& value, size_t kind, size_t index, const ChangeNames& names);

// Makes one change: draws a member that `takes` accepts, all with equal chances, and then a place.
template <class T, class Takes>
FieldChange draw_change(RandomSource& random, T& value, const ChangeNames& names, Takes takes) {
  const ChangeCounts counts = count_changes(value, names);
  std::vector<size_t> kinds;
  for (size_t kind = 0; kind < counts.size(); ++kind)
    if (counts[kind] > 0 && takes(field_kinds()[kind])) kinds.push_back(kind);
  const size_t kind = random.pick(kinds);
  return make_change(value, kind, random.below(counts[kind]), names);
}
template <class T>
FieldChange draw_change(RandomSource& random, T& value, const ChangeNames& names) {
  return draw_change(random, value, names, [](const FieldKind&) { return true; });
}

}  // namespace fusebox::fuzz
