// Finds the axes of a fusion that belong together: for each op, which axes of operands an axis of the result follows.
// Only for use inside fuzz/.
//
// An axis is a position among the axes that consumers see.
//
//   AxisLinks links = axis_links(g, op, sizes);     // for `permute dims [1, 0]`: {0, 0, 1}, {0, 1, 0}
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/domain/axis_relation.h"
#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

struct AxisLink {
  size_t operand;  // position among the op's operands
  size_t axis;     // of the operand
  size_t result;   // axis of each result
};
struct AxisLinks {
  std::vector<AxisLink> links;
  std::vector<std::pair<size_t, size_t>> fixed;  // (operand, axis): the op names this axis, so it cannot go
  std::vector<size_t> fixed_results;
  // For a reshape: axes that merge and split into each other, when single links do not suffice.
  struct Group {
    std::vector<size_t> axes, results;
  };
  std::vector<Group> groups;
};
AxisLinks axis_links(const Graph& g, OpId op, const Bindings& sizes);

// Counts an axis from 0 if it was given from the end.
inline size_t axis_from(int64_t axis, size_t rank) { return named_axis(axis, rank); }

using AxisOf = std::pair<ValueId, size_t>;

// Disjoint sets of axes.
class AxisClasses {
 public:
  AxisOf find(AxisOf a) const {
    for (auto it = parent_.find(a); it != parent_.end(); it = parent_.find(a)) a = it->second;
    return a;
  }
  void unite(AxisOf a, AxisOf b) {
    a = find(a), b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::map<AxisOf, AxisOf> parent_;
};

}  // namespace fusebox::fuzz
