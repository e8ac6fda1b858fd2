// Relates the axes of an op's operand to the axes of its result: one entry for each axis of the operand. An entry
// follows from the rule of the operand's slot (AxisRule, ir/table/op.h), the attributes and the two ranks. Domains,
// extents and iteration types play no part, so inference can ask before the result exists.
//
// Invariants: the operand's axes are its logical axes without reductions; the result's axes are those of its root
// domain. If no entry of any operand names an axis of the result, this axis is new: the op makes it.
//
//   // %y = gather %x, %index axis 1, of rank 3
//   axis_relation(g, op, 0)   // {kWithin, 0}, {kChosen, 1}, {kWithin, 2}
//   axis_relation(g, op, 1)   // {kSame, 0}, {kSame, 1}, {kSame, 2}
//   // %y = select %x, 3 axis 0, of rank 2
//   axis_relation(g, op, 0)   // {kChosen, kNoAxis}, {kSame, 0}
//   reads_by_data(g, op, 0)   // false: a scalar chooses, the same place for every element
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

enum class AxisRelation : uint8_t {
  kNone,       // relates to no axis of the result: the operand is read whole, or the ranks do not fit the rule
  kSame,       // read at the result's index
  kBroadcast,  // as kSame, or one element serves the whole axis
  kReduced,    // read as a whole; the result marks its axis as a reduction
  kResized,    // read at the root's index; the result's logical axis is a part or an extension of the root's
  kRegrouped,  // read at the root's index; the result's logical axes are merged and split from the root's
  kWithin,     // as kSame, but the extents may differ: only the indices of the shorter axis are used
  kJoined,     // read at the result's index minus an offset
  kChosen,     // read at places that an index gives; the result may have an axis in its place
  kDropped,    // has one element and no axis in the result
};

inline constexpr size_t kNoAxis = static_cast<size_t>(-1);

struct OperandAxis {
  AxisRelation relation = AxisRelation::kNone;
  size_t result = kNoAxis;  // position in the result's root domain

  // Whether the operand is read at the index of `result`.
  bool is_at_result() const {
    return result != kNoAxis && relation != AxisRelation::kChosen && relation != AxisRelation::kJoined;
  }
  bool operator==(const OperandAxis&) const = default;
};

std::vector<OperandAxis> axis_relation(AxisRule rule, const Attrs& attrs, size_t operand_rank, size_t result_rank);
// The same for tensors of a graph. Empty if the operand or the result is no tensor.
std::vector<OperandAxis> axis_relation(const Graph& g, const Op& op, size_t operand, size_t result = 0);

// Whether data choose the elements that the op reads from this operand. Any thread may then read any element along an
// axis. A scalar index does not count as data: it chooses one place for all elements.
bool reads_by_data(const Graph& g, const Op& op, size_t operand);
// Whether this holds for any operand.
bool reads_by_data(const Graph& g, const Op& op);
// Whether this op stretches axes of extent 1 to extents that its operands give.
inline bool stretches(OpKind kind) {
  return family_of(kind) == AxisRule::kExpanded || family_of(kind) == AxisRule::kPlaced;
}
// The axis counted from 0. A negative axis counts from the end.
size_t named_axis(int64_t axis, size_t rank);

}  // namespace fusebox
