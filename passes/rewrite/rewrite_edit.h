// The common part of rewrite passes. Values are replaced while a graph is walked, and all readers change at once at the
// end.
//
// A pass walks the body in order, asks `operand` for the current value of an operand, and calls `replace(old, by)`.
// Outputs, inputs and tensors with a layout or a mesh of their own stay as they are. A scalar also stays if its
// replacement would make inference refuse the program. A constant in its place may make an axis a broadcast that an op
// does not stretch, or may leave the dtype of a tensor beside it. A polynomial may grow too large.
//
//   void skip(Graph& g, Rewriter& r, const RewriteOptions&) {
//     for (OpId op : g[Graph::body()].ops) if (…) r.replace(g[op].results[0], r.operand(op, 0));
//   }
//   bool pass(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, skip); }
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "passes/rewrite/open_axes.h"
#include "passes/rewrite/rewrite.h"

namespace fusebox {

class Rewriter {
 public:
  // Values in `held` are not replaced.
  Rewriter(Graph& g, const RewriteOptions& options, std::span<const ValueId> held);

  // The value that stands for `v` at this point of the walk.
  ValueId now(ValueId v) const;
  ValueId operand(OpId op, size_t i) const { return now(g_[op].operands[i]); }
  // Whether readers of `v` may read `by` instead: dtype, axes and extents are the same, also once symbolic axes are
  // resolved, and `v` may be replaced. `by` must be defined before `v`.
  bool fits(ValueId v, ValueId by) const;
  // The part of `fits` that does not depend on `by`, except `held`. If it is false, nothing fits.
  bool is_replaceable(ValueId v) const;
  // Whether `replace` would do something, if `fits` allows it.
  bool may_replace(ValueId v) const;
  // Lets readers of `v` read `by`. Once the limit is reached, it does nothing.
  void replace(ValueId v, ValueId by);
  // The same for several values that one op makes, as one change.
  void replace_together(std::span<const std::pair<ValueId, ValueId>> pairs);
  // Counts a change to the op that makes `v`. False if the limit is reached or `v` is held; the op then must not be
  // changed.
  bool take(ValueId v);
  // Gives the op these operands. An op that is changed in another way must be given its operands too.
  void set_operands(OpId op, std::vector<ValueId> operands);
  // Applies all replacements. True: an op now reads other scalars, or an extent is another.
  bool finish();
  // The replaced values and the results of changed ops, in order.
  const std::vector<ValueId>& taken() const { return taken_; }

  // Whether two values have axes of the same types and extents, as consumers see them.
  bool same_axes(ValueId a, ValueId b) const;
  bool same_axis(DomainId a, DomainId b) const;

 private:
  void find_clamped_bounds(OpId slice);
  // Whether a slice clamps v, and would take `by` as it is. A size in place of `floor_div %n, 1` has the same value, and a run
  // in which it lies beyond the axis would be refused.
  bool unclamps(ValueId v, ValueId by) const;
  bool is_plain(ValueId v) const;
  // Whether ATen reads `v` and would find `by` elsewhere: it lays out what it makes as its operands lie.
  bool moves_operand(ValueId v, ValueId by) const;
  // Whether symbolic axes decide the same of both values, which have the same axes.
  bool same_deciders(ValueId a, ValueId b) const;
  // The scalar that an axis' extent is, where the graph has it: extents of derived domains are emitted for consumers.
  ValueId extent_of(DomainId d) const;
  bool is_held(ValueId v) const { return std::find(held_.begin(), held_.end(), v) != held_.end(); }
  // Whether a scalar is replaced or made from a replaced one, or a tensor is made with such a scalar.
  bool has_changed(ValueId v) const;
  // Whether inference may now make a result differently.
  bool changes_extents();

  Graph& g_;
  int64_t left_;
  std::span<const ValueId> held_;
  std::vector<ValueId> taken_;
  std::multimap<ValueId, ValueId> clamped_;      // bounds of slices, with the extents of the axes that they cut
  std::vector<ValueId> by_;                      // by value; none: itself
  std::vector<bool> is_output_;                  // by value
  std::vector<bool> is_read_, is_read_by_aten_;  // by value
  std::vector<bool> is_changed_;                 // by value: whether it is made from other scalars than before
  // A copy of the graph that extents are emitted into and taken out of again, and the ops that changed since.
  mutable std::optional<Graph> scratch_;
  mutable std::vector<OpId> edited_;
  mutable std::optional<OpenAxes> open_;
};

// Runs a pass on a copy of `g` and keeps the result. True: changed. If inference refuses the result, bisecting the
// limit finds the first change that it refuses, and the pass runs again without that change. Held changes are tried
// again on the result, and all changes where inference has made it, until nothing changes any more.
using RewritePass = void (*)(Graph&, Rewriter&, const RewriteOptions&);
bool rewrite_readers(Graph& g, RewriteOptions options, RewritePass pass);

}  // namespace fusebox
