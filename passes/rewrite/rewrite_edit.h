// What rewrite passes share: replacing values while a graph is walked, all readers at once at the end.
//
// A pass walks the body in order, asks `operand` for what an operand is by now, and says `replace(old, by)`. Outputs,
// inputs and tensors with a layout or a mesh of their own stay as they are.
//
//   Rewriter r(g, options);
//   for (OpId op : g[Graph::body()].ops) if (…) r.replace(g[op].results[0], r.operand(op, 0));
//   return r.finish();
#pragma once

#include <utility>
#include <vector>

#include "passes/rewrite/rewrite.h"

namespace fusebox {

class Rewriter {
 public:
  Rewriter(Graph& g, const RewriteOptions& options);

  // What stands for a value by now.
  ValueId now(ValueId v) const;
  ValueId operand(OpId op, size_t i) const { return now(g_[op].operands[i]); }
  // Whether readers of `v` may read `by` instead: same dtype, axes and extents, `by` defined before, `v` no output; a
  // constant is one that the dtypes of its readers hold.
  bool fits(ValueId v, ValueId by) const;
  // What does not depend on the other value: false, and nothing fits.
  bool is_replaceable(ValueId v) const;
  // Once the limit is reached it changes nothing.
  void replace(ValueId v, ValueId by);
  // Whether one more change of the op itself is within the limit; counts it.
  bool take();
  // The op reads these from now on.
  void set_operands(OpId op, std::vector<ValueId> operands) { g_[op].operands = std::move(operands); }
  // The pass changed the op otherwise.
  void mark_changed() { changed_ = true; }
  // Puts everything in its place; true: changed.
  bool finish();

  // Axes of the same types and extents, as consumers see them.
  bool same_axes(ValueId a, ValueId b) const;
  bool same_axis(DomainId a, DomainId b) const;

 private:
  bool is_plain(ValueId v) const;
  // Whether every reader of a scalar beside tensors may read a constant instead.
  bool readers_hold(ValueId v, ValueId by) const;
  // Whether tensors that are made with this scalar, and what is made of them, may be made with 1 in its place: an axis
  // of that extent is a broadcast, which not every op stretches.
  bool still_infers(ValueId v, ValueId by) const;

  Graph& g_;
  int64_t left_;
  bool changed_ = false;
  std::vector<ValueId> by_;      // by value; none: itself
  std::vector<bool> is_output_;  // by value
  std::vector<bool> is_read_;    // by value
  std::vector<bool> is_beside_;  // by value: a scalar that an op reads beside tensors
};

}  // namespace fusebox
