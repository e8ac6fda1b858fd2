// How the axes of an op's operand relate to the axes of its result: one entry for each axis of the operand, made from
// the rule of its slot (AxisRule, ir/table/op.h), the attributes and the two ranks. Domains, extents and iteration types
// play no part, so that inference can ask before there is a result.
//
// The operand's axes are those that consumers see (logical, without reductions); the result's are those of its root
// domain. An axis of the result that no entry of any operand names is new: the op makes it.
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
  kNone,       // no axis of the result: the operand is read whole, or the ranks do not fit the rule
  kSame,       // read at the result's index; a permutation changes the position alone
  kBroadcast,  // as kSame, or one element serves the whole axis
  kReduced,    // read along the whole axis, which the result marks as reduced
  kResized,    // read at the root's index; the result's axis is a part or an extension of it
  kRegrouped,  // read at the root's index; the result's axes are merged and split from it
  kWithin,     // as kSame; the extents may differ, and the shorter one bounds the other's use
  kJoined,     // read at the result's index less an offset
  kChosen,     // read where an index says; the result may have an axis in its place
  kDropped,    // has one element, and no axis of the result
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
// The same for tensors of a graph; empty where the operand or the result is no tensor.
std::vector<OperandAxis> axis_relation(const Graph& g, const Op& op, size_t operand, size_t result = 0);

// Whether data choose the elements that the op reads of this operand: any thread may read any element along an axis. An
// index that is a scalar chooses one place for all elements, which is no choice by data.
bool reads_by_data(const Graph& g, const Op& op, size_t operand);
// Whether it does so of any operand.
bool reads_by_data(const Graph& g, const Op& op);
// Whether this op stretches axes of extent 1 to extents that it is given.
inline bool stretches(OpKind kind) {
  return family_of(kind) == AxisRule::kExpanded || family_of(kind) == AxisRule::kPlaced;
}
// An axis from 0, given as such or counted from the end.
size_t named_axis(int64_t axis, size_t rank);

}  // namespace fusebox
