// The range of an index of a kernel that follows from constants: loops with constant bounds, sums, differences,
// products and remainders.
//
//   for 0, 8, 1 { index %i;  %n = mul %i, 4 }
//   ConstantRanges(kernel).of(n)   // 0 to 28
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ir/graph/graph.h"

namespace fusebox {

struct ConstantRange {
  int64_t least = 0, most = 0;
};

class ConstantRanges {
 public:
  explicit ConstantRanges(const Graph& kernel);
  // Nothing if it depends on anything else, or on many ops.
  std::optional<ConstantRange> of(ValueId index) const;

 private:
  std::optional<ConstantRange> find(ValueId v, int& budget) const;

  const Graph& g_;
  std::map<ValueId, ConstantRange> loops_;  // by the loop's index
};

}  // namespace fusebox
