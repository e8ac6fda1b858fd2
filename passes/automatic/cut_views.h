// Reshapes and slices that a cut leaves to the host program, because their results lie in memory anyway: those of inputs
// that kernels of reductions read, and reshapes that return what kernels make. Schedulers of reductions take no reshape and no slice, and
// no scheduler takes each reshape of what it makes.
//
//   %r = reshape %x to [%n, 32, %g];  %m = max %r over [2];  …  %y = reshape %d to [%n, %c];  output %y
//   CutViews::find(fusion)   // %r and %y
#pragma once

#include <map>
#include <vector>

#include "ir/module/module.h"
#include "passes/automatic/cut.h"
#include "passes/schedule/size_classes.h"
#include "passes/segment/view.h"

namespace fusebox {

class CutViews {
 public:
  // The ops of a fusion that should be views, in order.
  static std::vector<OpId> find(const Graph& fusion, const Defects& defects = {});
  // The ops that are views in a segmentation, in order.
  static std::vector<OpId> of(const Graph& fusion, const Segmentation& segmentation);

  // The fusion must outlive this. `inputs` tells what is known of the inputs' memory.
  CutViews(const Graph& fusion, std::vector<OpId> ops, const SizeClasses& sizes, const MemoryClasses& inputs,
           const Defects& defects = {});

  const std::vector<OpId>& ops() const { return ops_; }
  // Whether these ops are one reshape that may be a view of what a kernel stores.
  bool is_inner(const std::vector<OpId>& ops) const { return ops.size() == 1 && is_inner_[ops[0].index]; }
  // What is known of the memory of inputs and of views.
  const MemoryClasses& memory() const { return memory_; }
  // The same with values that these segments store over inputs: they lie in the inputs' memory.
  MemoryClasses memory_in(const Segmentation& segmentation) const;
  // Adds a segment for each view. Their names are numbers, from `first` on.
  void add_to(Segmentation& segmentation, size_t first) const;
  // Lays out those inputs of a segment that are views.
  void lay_out_inputs(Segment& segment) const;
  // The part of a cut that a view is, with the segment as a fusion.
  CutPart part(const Segment& segment, Graph fusion) const;

 private:
  MemoryClass memory_of(const View& view, OpId op, const SizeClasses& sizes) const;
  int64_t divisor_of_negative(ValueId v, const SizeClasses& sizes) const;

  const Graph& g_;
  const Defects defects_;
  std::vector<OpId> ops_;
  std::vector<bool> is_inner_;  // by op
  MemoryClasses memory_;
  std::map<std::string, Crossing> crossings_;  // of views of inputs
};

}  // namespace fusebox
