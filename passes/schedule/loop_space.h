// The loops that a fusion without reductions shares: its reference tensor, and how the axes of the others relate to it.
//
// The *place* of an axis says which axis of the reference it is read along. Two readers of a tensor that read it at
// different places need a copy of it each, because a kernel gives each tensor one nest of loops.
//
//   // %t = permute %x dims [1, 0];  %y = add %x, %t
//   read_once(w, "y");   // recompute %x_in for %t -> x_in_1
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/domain/domain.h"
#include "passes/schedule/schedule_view.h"
#include "passes/schedule/step_writer.h"

namespace fusebox {

// The output with the most axes that are no broadcasts, then the most elements, then the one along whose innermost axis the
// most bytes are loaded and stored, then the first; none without an output that is a tensor.
ValueId reference_of(const ScheduleView& view);
// Whether a kernel with so many elements as the tensor should begin before the launches in front have ended (the step
// dependent_launch). Large kernels are as fast without, and their parameters may be `__restrict__` then.
bool should_begin_early(const ScheduleView& view, ValueId reference);

// The sizes of axes that are 1 in every run of the classes. A schedule states them: an axis of one element has one index, and
// takes no part in where others lie.
std::vector<std::string> sizes_of_one(const ScheduleView& view);

// The product of some axes' sizes as a step can state it: the names of those that are no constants, and the product of the
// constants. Nothing if a size has no name, or the constants have no product.
struct NamedSizes {
  std::vector<std::string> names;
  int64_t factor = 1;
};
std::optional<NamedSizes> sizes_of(const Graph& fusion, std::span<const DomainId> axes);

// The axes of a tensor as a consumer sees them, in the order of its memory, outermost first.
std::vector<DomainId> axes_in_memory(const Graph& g, ValueId tensor);
// The innermost of them that is no broadcast, or none.
DomainId innermost_axis(const Graph& g, ValueId tensor);

// What the axes of a fusion's tensors have to do with one another.
struct FusionAxes {
  explicit FusionAxes(const Graph& fusion);
  AxisClasses classes;
  // The axes along which a slice, a pad or a cat moves elements by an offset, as its result has them.
  std::vector<DomainId> resized;
  // Whether an op moves elements along an axis of this class.
  bool is_resized(DomainId axis) const;
};

// The axes of the reference in the order of its memory, in runs, outermost first. Every input and output either lies in
// order along the axes of a run, each next to the following one, or lacks them all. So a run can be one loop. An axis along
// which a slice, a pad or a cat moves elements is a run of its own.
std::vector<std::vector<DomainId>> runs_of(const Graph& fusion, const FusionAxes& all, ValueId reference);

// For each axis of the reference, in the order of its axes: the position of the tensor's axis that goes with it, or none.
std::vector<std::optional<size_t>> axes_along(const Graph& g, const FusionAxes& all, ValueId reference, ValueId tensor);

// Why the outputs do not share one space of loops: a lower-case clause; nothing if they do.
std::optional<std::string> outputs_differ(const Graph& fusion, const FusionAxes& all, ValueId reference);

struct Behind {
  std::string tensor, reader;
};
struct ReadOnce {
  // The tensors that are a copy for one reader, or lie behind a reader that shifts its operand (slice, pad, cat): their
  // loops are set like those of their reader. Readers come first.
  std::vector<Behind> behind;
  // By tensor, for each of its axes: the number of the reference's axis along which it is read, or another word.
  std::map<std::string, std::vector<std::string>> places;
};
// Gives each reader that reads a tensor at another place a copy of it. Nothing if one op reads a tensor at two places.
std::optional<ReadOnce> read_once(StepWriter& w, ValueId reference);

}  // namespace fusebox
