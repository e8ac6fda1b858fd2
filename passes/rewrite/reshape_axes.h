// Which axes of a reshape's operand become which axes of its result, also where the extents alone do not tell.
//
// A reshape keeps the number of elements, and a run in which it does not is refused. So more follows than from the forms:
// - Axes that both sides share at their ends are kept, and what is left between them merges or splits as a whole.
// - If `%q = floor_div %c, 32`, then %q · 32 is at most %c. A reshape that reads %c on one side and such quotients on the
//   other has the same number of elements only if every quotient is exact, so that %c is %q · 32.
// Both need elements: a reshape of 0 elements to 0 elements may have any extents. A caller must be right then, too, or be
// refused.
//
//   // %q = floor_div %c, 32;  %r = reshape %x to [%n, 32, %q, 1, %h], of %x : f32[%n, %c, %h]
//   axes_of_reshape(g, r)   // {x.i0} → {r.i0}, {x.i1} → {r.i1, r.i2}, {x.i2} → {r.i4};  r.i3 is a unit
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

struct ReshapeGroup {
  std::vector<DomainId> from, to;
  // Nothing tells which of these axes become which.
  bool is_open = false;

  bool keeps() const { return !is_open && from.size() == 1 && to.size() == 1; }
  bool splits() const { return !is_open && from.size() == 1 && to.size() > 1; }
  bool merges() const { return !is_open && from.size() > 1 && to.size() == 1; }
};

// Whether a reshape may drop or make the axis anywhere: it has one element.
bool is_unit_axis(const Graph& g, DomainId axis);
// The groups, in order. Units are in none. The op is a reshape.
std::vector<ReshapeGroup> axes_of_reshape(const Graph& g, OpId op);

}  // namespace fusebox
