// Every change of a single member of a value, by number: what the laws of fields are asked of (laws.h). Which members
// there are, ir/module/fields.h and serde/fields.h say; how one changes follows from its type.
//
// Changes: an integer, a float or a byte goes to its neighbours, an enumerator to those beside it (an op or a step to
// others of its format), a flag to the other; an id to the ids beside it, to none and from none; a text gets a letter,
// is emptied, becomes another name; a list loses, repeats or exchanges elements, or begins; an attribute goes, comes,
// or gets another value. A list of a tensor that says what its default says is written out, as it is and otherwise.
//
// Invariants: the same value has the same changes on every machine; a change that is made makes the value another one
// in one member. What is made need not be valid.
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
  bool is_table = false;  // of structs that count themselves: it has no changes of its own
};
std::span<const FieldKind> field_kinds();
std::string text(const FieldKind& kind);  // `Transform.inner_split`

struct FieldChange {
  size_t kind = 0;
  std::string place;
  std::string_view what;  // `next`, `dropped` …
  FieldUse use;           // of the member and all that it stands in
};
std::string text(const FieldChange& change);

// For each kind, how many changes there are.
using ChangeCounts = std::vector<size_t>;

// The texts that a text may become.
using ChangeNames = std::vector<std::string>;
ChangeNames names_of(const Graph& g);

// T: Graph, StepList, Segmentation, InputSpecs, Bundle.
template <class T>
ChangeCounts count_changes(const T& value, const ChangeNames& names);
template <class T>
FieldChange make_change(T& value, size_t kind, size_t index, const ChangeNames& names);

// Makes one change: draws a member that `takes` accepts, each as likely as another, and then a place.
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
