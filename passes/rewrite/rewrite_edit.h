// What rewrite passes share: replacing values while a graph is walked, all readers at once at the end.
//
// A pass walks the body in order, asks `operand` for what an operand is by now, and says `replace(old, by)`. Outputs,
// inputs and tensors with a layout or a mesh of their own stay as they are. So does a scalar whose replacement would
// make inference refuse the program: with a constant in its place an axis may be a broadcast that an op does not
// stretch, a constant may leave the dtype of a tensor beside it, and a polynomial may grow too large.
//
//   void skip(Graph& g, Rewriter& r, const RewriteOptions&) {
//     for (OpId op : g[Graph::body()].ops) if (…) r.replace(g[op].results[0], r.operand(op, 0));
//   }
//   bool pass(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, skip); }
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "passes/rewrite/rewrite.h"

namespace fusebox {

class Rewriter {
 public:
  // Values in `held` stay as they are.
  Rewriter(Graph& g, const RewriteOptions& options, std::span<const ValueId> held);

  // What stands for a value by now.
  ValueId now(ValueId v) const;
  ValueId operand(OpId op, size_t i) const { return now(g_[op].operands[i]); }
  // Whether readers of `v` may read `by` instead: same dtype, axes and extents, `by` defined before, `v` no output.
  bool fits(ValueId v, ValueId by) const;
  // What does not depend on the other value: false, and nothing fits.
  bool is_replaceable(ValueId v) const;
  // Once the limit is reached it changes nothing.
  void replace(ValueId v, ValueId by);
  // Whether the op that makes `v` may be changed itself: one more change is within the limit. Counts it.
  bool take(ValueId v);
  // The op reads these from now on. An op that is changed in another way must be given its operands too.
  void set_operands(OpId op, std::vector<ValueId> operands);
  // Puts everything in its place; false: inference refuses what now reads other scalars.
  bool finish();
  // The values that were replaced and the results of ops that were changed, in order.
  const std::vector<ValueId>& taken() const { return taken_; }

  // Axes of the same types and extents, as consumers see them.
  bool same_axes(ValueId a, ValueId b) const;
  bool same_axis(DomainId a, DomainId b) const;

 private:
  bool is_plain(ValueId v) const;
  // The scalar that an axis' extent is, where the graph has it: extents of derived domains are emitted for consumers.
  ValueId extent_of(DomainId d) const;
  bool is_held(ValueId v) const { return std::find(held_.begin(), held_.end(), v) != held_.end(); }
  // Whether a scalar is replaced or made of one that is, or a tensor is made with such a scalar.
  bool has_changed(ValueId v) const;
  // The ops whose results inference may make differently, in order.
  std::vector<OpId> changed_ops();

  Graph& g_;
  int64_t left_;
  std::span<const ValueId> held_;
  std::vector<ValueId> taken_;
  std::vector<ValueId> by_;       // by value; none: itself
  std::vector<bool> is_output_;   // by value
  std::vector<bool> is_read_;     // by value
  std::vector<bool> is_changed_;  // by value: made of other scalars than before
  // A copy of the graph that extents are emitted into and taken out of again, and the ops that changed since.
  mutable std::optional<Graph> scratch_;
  mutable std::vector<OpId> edited_;
};

// Runs a pass on a copy of `g` and keeps what it made; true: changed. Where inference refuses it, halving the limit finds
// the change from which on it does, and the pass runs again without that one. What was held back is tried again beside
// what was changed, until nothing changes any more.
using RewritePass = void (*)(Graph&, Rewriter&, const RewriteOptions&);
bool rewrite_readers(Graph& g, RewriteOptions options, RewritePass pass);

}  // namespace fusebox
