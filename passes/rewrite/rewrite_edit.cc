#include "passes/rewrite/rewrite_edit.h"

#include <algorithm>

#include "ir/infer/infer.h"
#include "ir/infer/scalar_operand.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// The scalar that an axis' extent is, where the graph has it: extents of derived domains are emitted for consumers.
ValueId extent_of(const Graph& g, DomainId d) {
  if (g[d].extent) return g[d].extent;
  Graph scratch = g;
  const ValueId extent = emit_extent(scratch, Graph::body(), d);
  return extent.index < g.values.size() ? extent : ValueId();
}

// The scalars that the results of an op are as long as.
template <class G, class F>
void for_each_extent(G& g, OpId op, const F& f) {
  for (ValueId result : g[op].results) {
    if (!g.is_tensor(result)) continue;
    const Tensor& t = g.tensor_of(result);
    for (const auto* list : {&t.root, &t.logical})
      for (DomainId d : *list) f(g[d].extent), f(g[d].expanded);
    for (TransformId id : t.transforms) f(g[id].factor), f(g[id].right);
  }
}

}  // namespace

Rewriter::Rewriter(Graph& g, const RewriteOptions& options)
    : g_(g),
      left_(options.limit),
      by_(g.values.size()),
      is_output_(g.values.size()),
      is_read_(g.values.size()),
      is_beside_(g.values.size()) {
  const auto read = [&](ValueId v) {
    if (v) is_read_[v.index] = true;
  };
  for (OpId op : g[Graph::body()].ops) {
    for (ValueId v : g[op].operands) {
      read(v);
      if (v && g[op].kind == OpKind::kOutput) is_output_[v.index] = true;
      if (v && !g.is_tensor(v) && !g[op].results.empty() && g.is_tensor(g[op].results[0])) is_beside_[v.index] = true;
    }
    for_each_extent(g, op, read);
  }
}

ValueId Rewriter::now(ValueId v) const {
  while (v && v.index < by_.size() && by_[v.index]) v = by_[v.index];
  return v;
}

bool Rewriter::is_plain(ValueId v) const {
  if (!g_.is_tensor(v)) return true;
  const Tensor& t = g_.tensor_of(v);
  return t.allocation.empty() && t.contiguity.empty() && t.devices.empty() && t.memory == MemoryType::kUnset;
}

bool Rewriter::same_axes(ValueId a, ValueId b) const {
  if (g_[a].kind != g_[b].kind) return false;
  if (!g_.is_tensor(a)) return true;
  const Tensor &s = g_.tensor_of(a), &t = g_.tensor_of(b);
  if (s.devices != t.devices) return false;
  const auto x = logical_without_reductions(g_, s), y = logical_without_reductions(g_, t);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (!same_axis(x[i], y[i])) return false;
  return true;
}

bool Rewriter::same_axis(DomainId a, DomainId b) const {
  if (g_[a].iter_type != g_[b].iter_type || now(g_[a].expanded) != now(g_[b].expanded)) return false;
  const ValueId m = now(extent_of(g_, a)), n = now(extent_of(g_, b));
  return m && m == n;
}

bool Rewriter::is_replaceable(ValueId v) const {
  return v.index < is_output_.size() && !is_output_[v.index] && g_[v].def && !demands(g_[g_[v].def].kind, kSignature) &&
         is_plain(v);
}

bool Rewriter::fits(ValueId v, ValueId by) const {
  return v != by && is_replaceable(v) && g_[v].dtype == g_[by].dtype && same_axes(v, by) && readers_hold(v, by) &&
         still_infers(v, by);
}

bool Rewriter::still_infers(ValueId v, ValueId by) const {
  if (!is_beside_[v.index] || g_[by].dtype != Dtype::kIndex || evaluate_integer(g_, by) != 1) return true;
  Graph tried = g_;
  std::vector<bool> is_changed(g_.values.size());
  try {
    for (OpId id : g_[Graph::body()].ops) {
      bool changes = false;
      for (ValueId& o : tried[id].operands) {
        changes = changes || (o && (now(o) == v || (o.index < is_changed.size() && is_changed[o.index])));
        o = now(o) == v ? by : now(o);
      }
      if (!changes || g_[id].results.empty() || !g_.is_tensor(g_[id].results[0])) continue;
      infer(tried, id);
      for (ValueId r : g_[id].results) is_changed[r.index] = true;
    }
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return false;
  }
  return true;
}

bool Rewriter::readers_hold(ValueId v, ValueId by) const {
  if (!is_beside_[v.index] || !evaluate(g_, by)) return true;
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    std::vector<ValueId> operands = op.operands;
    for (ValueId& o : operands) o = now(o);
    if (std::find(operands.begin(), operands.end(), v) == operands.end()) continue;
    std::replace(operands.begin(), operands.end(), v, by);
    if (unheld_constant(g_, op.kind, op.attrs, operands)) return false;
  }
  return true;
}

bool Rewriter::take() {
  if (left_ <= 0) return false;
  --left_;
  return true;
}

void Rewriter::replace(ValueId v, ValueId by) {
  if (by_[v.index] || !is_read_[v.index] || !take()) return;
  by_[v.index] = by;
  changed_ = true;
}

bool Rewriter::finish() {
  if (!changed_) return false;
  const auto put = [&](ValueId& v) { v = now(v); };
  for (OpId op : g_[Graph::body()].ops) {
    for (ValueId& v : g_[op].operands) put(v);
    for_each_extent(g_, op, put);
  }
  return true;
}

}  // namespace fusebox
