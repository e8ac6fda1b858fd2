// Classes of axes, and the finest axes that the reshapes of a fusion make of each class.
//
// Ops read two axes of a class at the same place. A reshape that splits an axis *refines* its class into the classes of the
// axes that it makes, and one that merges axes refines the class of the merged axis into theirs. Parts may be refined
// themselves. A class is *held*, so that nothing refines it, if
// - an op that is not made anew has an axis of it, or an op chooses, joins or cuts along it; but what a slice cuts out of an input
//   is a class of its own,
// - an axis of it is expanded, or may become an expanded broadcast or one element once inputs are known,
// - an axis of an input or output that keeps its memory is in it: one that is overwritten, distributed or laid out,
// - an axis of it has no form, or two reshapes refine it into different extents.
// The axes of a class may have different forms, as those of two inputs that one op reads: a run in which they differ is refused.
// Only ops count that an output needs.
//
//   // %r = reshape %x to [%n, 32, %cg];  %y = reshape %z to [%n, %c], of %z : f32[%n, 32, %cg]
//   FinestClasses finest(g);
//   finest.leaves(x.i1)   // {r.i1, r.i2}
//   finest.leaves(x.i0)   // {x.i0}, or another axis of its class
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/rewrite/reshape_axes.h"

namespace fusebox {

class FinestClasses {
 public:
  explicit FinestClasses(const Graph& g);

  bool is_live(OpId op) const { return is_live_[op.index]; }
  bool is_refined(DomainId axis) const { return is_refined_class(find(axis.index)); }
  bool has_refined(std::span<const DomainId> axes) const;
  // Whether an axis of the value is refined.
  bool is_refined(const Graph& g, ValueId v) const;
  // Whether a slice cuts its operand along an axis that is refined behind it. Its result is split where it is made, as an input.
  bool cuts_refined(const Graph& g, const Op& op) const;
  // An axis of each class that the axis' class becomes, in order: one if nothing refines it.
  std::vector<DomainId> leaves(DomainId axis) const;
  uint32_t class_of(DomainId axis) const { return find(axis.index); }
  // Whether a reshape that splits or merges a refined class stands in front of a reduction or behind one, and ops would
  // change: others than reshapes that split an input or merge into an output.
  bool is_worthwhile(const Graph& g) const;

 private:
  struct Class {
    bool is_held = false;
    std::vector<DomainId> parts;
  };

  bool is_refined_class(uint32_t c) const { return !classes_[c].is_held && !classes_[c].parts.empty(); }
  uint32_t find(uint32_t i) const;
  void hold(DomainId axis) { classes_[find(axis.index)].is_held = true; }
  void hold_all(const Graph& g, ValueId v);
  void unite(const Graph& g, DomainId a, DomainId b);
  bool are_alike(const Graph& g, std::span<const DomainId> a, std::span<const DomainId> b) const;
  void refine(const Graph& g, DomainId axis, const std::vector<DomainId>& parts);

  void find_live(const Graph& g);
  void learn_axes(const Graph& g, ValueId v);
  void learn_op(const Graph& g, OpId op);
  void learn_operand(const Graph& g, const Op& op, size_t operand, size_t result);
  bool is_source_of_its_own(const Graph& g, const Op& slice) const;
  void learn_outputs(const Graph& g);
  void hold_cycles();
  bool is_on_boundary(const Graph& g, const Op& op) const;
  bool changes_ops(const Graph& g) const;

  std::vector<bool> is_live_;                      // by op
  std::vector<uint32_t> parent_;                   // by domain
  std::vector<Class> classes_;                     // by domain that stands for its class
  std::vector<std::vector<ReshapeGroup>> groups_;  // by op
  std::vector<bool> is_output_;                    // by value
};

// Whether `finest_axes` can make the op with finer axes.
bool can_refine(const Graph& g, const Op& op);

}  // namespace fusebox
