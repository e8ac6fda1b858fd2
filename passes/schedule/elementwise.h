// One kernel for a fusion whose ops compute or move elements: the common part of the schedulers pointwise and resize. Each
// thread has one chunk of the reference output, or several, and computes everything that the chunk needs.
//
//   pointwise reference %y axes 2 vector 8 threads 256 unroll 1 outer 2 reuse 1 %x_in 8 %y 8
//
// `axes`: so many of the innermost axes are one loop. `vector`: the elements of a chunk. `unroll`: chunks of a thread.
// `reuse`: so many elements of the `outer` outermost axes share a chunk of the inputs that lack these axes. `parts`: an
// axis of few elements that slices, pads or joins move, which each thread walks whole. Then,
// by copy: the elements that it moves at once, if they are more than one. `multiple %n`: the schedule assumes that the
// number divides %n, which the classes of sizes show and the launch checks.
#pragma once

#include <string_view>
#include <vector>

#include "ir/module/step.h"
#include "passes/schedule/heuristics.h"
#include "passes/schedule/schedule_view.h"

namespace fusebox {

Heuristics elementwise_choose(const ScheduleView& view, std::string_view scheduler);
std::vector<Step> elementwise_plan(const ScheduleView& view, const Heuristics& heuristics);

}  // namespace fusebox
