// The layouts of tensors that cross segments. The steps of a kernel segment may choose the order in which its outputs
// lie in memory. ATen chooses the strides of what an ATen segment makes, and is asked for them before any data. A view lies
// as its operand does. The segments that read a tensor are made for its layout.
//
//   CrossingLayouts layouts(fusion, segmentation, {.infer = infer, .sizes = sizes, .inputs = inputs});
//   for each segment i, in order: schedule extract(fusion, segmentation.segments[i]), then
//   layouts.take(segmentation, i, scheduled);
//
// Example: an ATen segment slices `%y = slice %x from [0, 0] to [%m, %k] by [1, 1]` of a contiguous %x of n columns. For k = n − 1
// its strides are (n, 1), so the crossing's contiguity is f t, and the kernel that reads it asks for the first stride. For
// k = n it is t t. Another pair of sizes is served by the same program only if it gives the same flags.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph/name_index.h"
#include "ir/infer/bind.h"
#include "ir/infer/tensor_layout.h"
#include "ir/module/module.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"

namespace fusebox {

struct View;

// The layouts of a segment's outputs: `given` are the segment's inputs in order, tensors with their strides. Throws
// kNoLayout if ATen does not tell.
using InferLayouts = std::function<std::vector<TensorLayout>(const Graph& segment, std::span<const BoundInput> given)>;

struct CrossingOptions {
  InferLayouts infer = nullptr;  // null: what ATen makes is made contiguous
  Bindings sizes = {};           // of the fusion's values
  // The layouts of the fusion's inputs, in order; empty: contiguous tensors.
  std::span<const BoundInput> inputs = {};
  Defects defects = {};  // seeded
};

class CrossingLayouts {
 public:
  // The fusion must outlive this. The segmentation is complete; its crossings change by `take` alone.
  CrossingLayouts(const Graph& fusion, const Segmentation& segmentation, CrossingOptions options = {});

  // Passes on the layout that a segment gives its outputs: to the allocation, and to the segments that read them.
  // `scheduled` is the scheduled kernel, or the ATen segment as a fusion. Throws kIllegalAllocation for a layout that is
  // no order of the logical axes, and what `infer` throws.
  void take(Segmentation& segmentation, size_t segment, const Graph& scheduled);

  // The strides of the tensors that cross, by name: of all that ATen segments and views made so far, and what they read.
  const std::map<std::string, TensorLayout>& known() const { return known_; }

 private:
  struct Place {
    size_t segment, input;
  };

  void take_kernel(Segmentation& segmentation, size_t segment, const Graph& scheduled);
  void take_aten(Segmentation& segmentation, size_t segment, const Graph& scheduled);
  void take_view(Segmentation& segmentation, size_t segment);
  const TensorLayout& layout_of(const std::string& value);
  TensorLayout layout_of(const View& view, const std::string& value, std::span<const int64_t> of_operand);
  void pass_on(Segmentation& segmentation, size_t segment, const Crossing& out);

  const Graph& fusion_;
  CrossingOptions options_;
  NameIndex names_;
  std::unordered_map<std::string, std::vector<Place>> places_;  // where segments read a value
  std::map<std::string, std::vector<int64_t>> made_;            // by kernels: the order of the axes, or empty
  std::map<std::string, TensorLayout> known_;
};

// The positions of a tensor's allocated axes among its logical axes without reductions, outermost first.
std::vector<int64_t> order_of(const Graph& g, const Tensor& t);

// The layout of a tensor of these extents that is dense in an order of its axes, outermost first. An axis that is
// broadcast has no place in memory and the stride 0.
TensorLayout dense_layout(std::vector<int64_t> shape, std::span<const int64_t> order,
                          const std::vector<bool>& broadcast);

// Whether strides are those of an order and contiguity, by axes of the order. An axis of one element may have any stride.
bool has_order(const TensorLayout& layout, std::span<const int64_t> order, std::span<const Contiguity> contiguity);

// The layout of a tensor of ATen's whose type declares an order and contiguity: the one that ATen chose if it is so, with
// any stride for a broadcast; else the dense one in that order.
TensorLayout declared_layout(const TensorLayout& chosen, std::span<const int64_t> order,
                             std::span<const Contiguity> contiguity, const std::vector<bool>& broadcast);

}  // namespace fusebox
