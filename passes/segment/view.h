// A view is a segment without a kernel: its one op, a reshape or a slice, gives a tensor that lies in its operand's memory,
// with strides and a first element of its own.
//
//   %r = reshape %x to [%n, 32, %g] of a contiguous %x of [%n, %c]     strides 32·g, g, 1
//   %s = slice %x from [0, 1] to [%n, %c] by [1, 1]                    strides c, 1, and one element on
//
// A slice always is one, and so is a reshape that only splits axes. Axes that a reshape merges have to lie behind one another
// without a gap.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/tensor_layout.h"
#include "ir/module/module.h"
#include "ir/table/defect.h"

namespace fusebox {

// The axes of a tensor in memory, outermost first, each with its contiguity.
struct MemoryOrder {
  std::vector<int64_t> order;
  std::vector<Contiguity> contiguity;
};
// How the result of an op lies in its operand's memory.
struct View {
  // A stride: that of an axis of the operand, times the extents of domains of the result.
  struct Stride {
    size_t axis = 0;
    std::vector<DomainId> times;
  };
  struct Shift {
    Stride by;
    ValueId left;  // so many strides before the operand's first element: zero or a negative number
  };
  std::vector<std::optional<Stride>> strides;  // by axis of the result; none for a broadcast
  std::vector<Shift> shifts;                   // of the first element
  MemoryOrder in_memory;
};

// That of a tensor that crosses so. Throws kIllegalAllocation for one that does not lie in memory by its axes.
MemoryOrder memory_order(const Graph& fusion, ValueId tensor, const Crossing& crossing);

// The view that an op of this fusion gives of an operand that lies so, or why there is none: a clause.
std::variant<View, std::string> find_view(const Graph& fusion, OpId op, const MemoryOrder& operand,
                                          const Defects& defects = {});
// The same for an operand as its type declares it.
std::variant<View, std::string> find_view(const Graph& fusion, OpId op, const Defects& defects = {});

// Puts the view's order and contiguity into what crosses a segment's border; both empty where they are as the type declares.
void lay_out(const Graph& fusion, const View& view, Crossing& result);

// The strides of a layout as the order tells them. An axis of one element has the stride that a longer one would have.
std::vector<int64_t> strides_in_order(const TensorLayout& layout, const MemoryOrder& in);

}  // namespace fusebox
