// The short axis that each thread of a pointwise kernel walks: an input lies along it, and the reference along another. The thread reads
// what lies side by side in that input, one element behind the other, while the cache holds it.
//
//   // %y = add %a, %t of f32[12, 74880], where %t = permute %b dims [1, 0]
//   choose_walk(view, axes, y, 4, 4)   // {.axis = %y.i0, .vector = 1, .unroll = 12}
#pragma once

#include "passes/schedule/loop_space.h"
#include "passes/schedule/schedule_view.h"

namespace fusebox {

struct Walk {
  DomainId axis;       // of the reference; none: no axis is walked
  int64_t vector = 1;  // elements of an access along the reference's innermost axis
  int64_t unroll = 1;  // elements along the walked axis that are loaded together

  explicit operator bool() const { return static_cast<bool>(axis); }
};

// `vector`: elements that an access along the reference's innermost axis may have; `widest`: bytes of an element of the widest tensor.
Walk choose_walk(const ScheduleView& view, const FusionAxes& all, ValueId reference, int64_t vector, int64_t widest);

}  // namespace fusebox
