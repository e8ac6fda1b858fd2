// Finds how a kernel of reductions reads its inputs and stores its outputs: which axis lies innermost in memory, how many
// elements an access takes, and which tensors are read or stored so.
//
//   // x bf16[m, n], n a multiple of 64:  innermost n, vector 8, loads {x}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/schedule/reduction_space.h"

namespace fusebox {

struct ReductionAccess {
  DomainId innermost;  // an axis of the space, and where the vectors lie
  // The axes in the order in which they lie in memory, outermost first. The innermost axis is the last of its list.
  std::vector<DomainId> kept, reduced;
  // Where the innermost axis is kept: the last kept axes, whose product is one axis of columns, because they lie behind one
  // another without a gap in every tensor that has one of them. All kept axes, if so few short columns would leave most
  // threads idle. Empty where the innermost axis is reduced.
  std::vector<DomainId> columns;
  int64_t vector = 1;                      // elements; 1: none
  int64_t bytes = 1;                       // of an element of the widest tensor that is read or stored in vectors
  std::vector<std::string> loads, stores;  // in vectors: inputs, outputs that are full
  // Sums of columns that one thread may store in vectors of 16 bytes, or of all its elements: they lie along the innermost axis,
  // which is kept.
  std::vector<std::string> sums;
  // Neighbouring threads take neighbouring places of so short columns, which lie in less than a sector.
  bool lanes_take_places = false;
  // The vectors lie in the product of all reduced axes, because each such tensor holds these axes without a gap; or in that
  // of several columns' axes.
  bool merges_first = false;
};

// The names of what is read and stored in vectors, as heuristics list them: separated by commas, and a comma if there is none.
std::string listed_in_vectors(const ReductionAccess& access);
ReductionAccess find_access(const ScheduleView& view, const ReductionSpace& space);
// Why a kernel of its own should turn a large full tensor, of which neighbouring threads would read or store single elements:
// a lower-case clause. Nothing if there is none.
std::optional<std::string> turned_declines(const ScheduleView& view, const ReductionSpace& space);
// The kept axes without those of columns.
std::vector<DomainId> kept_beside(const ReductionSpace& space, const ReductionAccess& access);

// Whether cache_after makes a copy of an input that a thread can keep: some reader does not find its elements by data.
bool can_be_cached(const Graph& g, ValueId input);

}  // namespace fusebox
