#include "passes/rewrite/rewrite_edit.h"

#include <algorithm>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/graph/compact.h"
#include "ir/infer/concretize.h"
#include "ir/infer/infer.h"
#include "ir/infer/is_library.h"
#include "ir/infer/slice_bound.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// Calls f on the scalars that set the extents of an op's results.
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

// Whether an output's axes have other types in the other graph, where inference made them again. A broadcast has the
// stride 0, so the output would lie otherwise in memory: pad by widths that became 0 leaves a broadcast as it is. A run
// makes iterations of a reshape's symbolic axes, so one that is a broadcast now is another axis as well.
bool changes_outputs(const Graph& g, const Graph& inferred) {
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    const auto before = logical_without_reductions(g, g.tensor_of(out.value));
    const auto after = logical_without_reductions(inferred, inferred.tensor_of(out.value));
    if (!std::ranges::equal(before, after, [&](DomainId a, DomainId b) {
          return (g[a].iter_type == IterType::kSymbolic && inferred[b].iter_type != IterType::kBroadcast) ||
                 (g[a].iter_type == inferred[b].iter_type && bool(g[a].expanded) == bool(inferred[b].expanded));
        }))
      return true;
  }
  return false;
}

// For each axis of the outputs: the axis that decides whether it becomes an expanded broadcast, by its tensor and place.
std::vector<std::pair<ValueId, size_t>> output_deciders(const Graph& g) {
  std::vector<std::pair<ValueId, size_t>> result;
  OpenAxes open(g);
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    for (DomainId axis : logical_without_reductions(g, g.tensor_of(out.value))) {
      const DomainId by = open.decider(g, axis);
      const Tensor* t = by ? &g[g[by].tensor] : nullptr;
      result.emplace_back(t ? t->value : ValueId(), t ? position_in(t->logical, by) : 0);
    }
  }
  return result;
}

// Infers every tensor again, as a reader of the program's text would: an axis that became constant decides what its
// readers infer.
Graph inferred_again(const Graph& g) {
  Graph again = g;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (!op.results.empty() && g.is_tensor(op.results[0]) && !demands(op.kind, kSignature)) infer(again, id);
  }
  return again;
}

// Whether inference of `now`, which gave `again`, leaves an axis to the sizes of a run that it did not leave to them in
// `before`. Steps could not resolve such an axis, because the tensor has it resolved already.
bool opens_axes(const Graph& before, const Graph& now, const Graph& again) {
  std::optional<Graph> was;
  for (size_t i = 0; i < before.values.size(); ++i) {
    const ValueId v(i);
    if (!now.is_tensor(v) || !now[v].def || symbolic_axes(again, v) <= symbolic_axes(now, v)) continue;
    if (!was) was = inferred_again(before);
    if (symbolic_axes(again, v) > symbolic_axes(*was, v)) return true;
  }
  return false;
}

// Whether inference of `now`, which gave `again`, resolves an axis.
bool resolves_axes(const Graph& now, const Graph& again) {
  for (size_t i = 0; i < now.values.size(); ++i)
    if (const ValueId v(i); now.is_tensor(v) && now[v].def && symbolic_axes(again, v) < symbolic_axes(now, v))
      return true;
  return false;
}

// The program as a rewrite leaves it. Nothing if inference refuses it, lays out its outputs otherwise, or leaves an axis open
// that was resolved. An axis that inference resolves now does not stay symbolic, for no step could resolve it in front of its
// readers: they are inferred already.
std::optional<Graph> accepted(const Graph& before, Graph now) {
  try {
    Graph again = inferred_again(now);
    // A pad by widths that became 0 passes on what decides its operand's axis.
    if (changes_outputs(now, again) || output_deciders(before) != output_deciders(again) ||
        opens_axes(before, now, again))
      return std::nullopt;
    return resolves_axes(now, again) ? std::move(again) : std::move(now);
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return std::nullopt;
  }
}

}  // namespace

Rewriter::Rewriter(Graph& g, const RewriteOptions& options, std::span<const ValueId> held)
    : g_(g),
      left_(options.limit),
      held_(held),
      by_(g.values.size()),
      is_output_(g.values.size()),
      is_read_(g.values.size()),
      is_read_by_aten_(g.values.size()),
      is_changed_(g.values.size()) {
  const auto read = [&](ValueId v) {
    if (v) is_read_[v.index] = true;
  };
  for (OpId op : g[Graph::body()].ops) {
    find_clamped_bounds(op);
    const bool is_aten = is_library(g, g[op]);
    for (ValueId v : g[op].operands) {
      read(v);
      if (v && is_aten) is_read_by_aten_[v.index] = true;
      if (v && g[op].kind == OpKind::kOutput) is_output_[v.index] = true;
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

bool Rewriter::moves_operand(ValueId v, ValueId by) const {
  if (!g_.is_tensor(v) || v.index >= is_read_by_aten_.size() || !is_read_by_aten_[v.index]) return false;
  const OpId def = g_[by].def;
  return !is_plain(by) || (def && is_library(g_, g_[def]));
}

bool Rewriter::same_deciders(ValueId a, ValueId b) const {
  if (!g_.is_tensor(a)) return true;
  if (!open_) open_.emplace(g_);
  const auto x = logical_without_reductions(g_, g_.tensor_of(a)), y = logical_without_reductions(g_, g_.tensor_of(b));
  for (size_t i = 0; i < x.size(); ++i)
    if (open_->decider(g_, x[i]) != open_->decider(g_, y[i])) return false;
  return true;
}

ValueId Rewriter::extent_of(DomainId d) const {
  if (g_[d].extent) return g_[d].extent;
  if (!scratch_ || scratch_->ops.size() != g_.ops.size() || scratch_->values.size() > g_.values.size()) {
    scratch_ = g_;
    edited_.clear();
  }
  Graph& scratch = *scratch_;
  for (OpId op : edited_) scratch[op] = g_[op];
  edited_.clear();
  scratch.values.insert(scratch.values.end(), g_.values.begin() + static_cast<std::ptrdiff_t>(scratch.values.size()),
                        g_.values.end());
  try {
    const ValueId extent = emit_extent(scratch, Graph::body(), d);
    scratch.values.resize(g_.values.size());
    scratch.ops.resize(g_.ops.size());
    scratch[Graph::body()].ops.resize(g_[Graph::body()].ops.size());
    return extent.index < g_.values.size() ? extent : ValueId();
  } catch (...) {
    scratch_.reset();
    throw;
  }
}

bool Rewriter::same_axis(DomainId a, DomainId b) const {
  if (g_[a].iter_type != g_[b].iter_type || now(g_[a].expanded) != now(g_[b].expanded)) return false;
  const ValueId m = now(extent_of(a)), n = now(extent_of(b));
  return m && m == n;
}

bool Rewriter::is_replaceable(ValueId v) const {
  return v.index < is_output_.size() && !is_output_[v.index] && g_[v].def && !demands(g_[g_[v].def].kind, kSignature) &&
         is_plain(v);
}

void Rewriter::find_clamped_bounds(OpId slice) {
  if (g_[slice].kind != OpKind::kSlice) return;
  const auto& operands = g_[slice].operands;
  const auto axes = logical_without_reductions(g_, g_.tensor_of(operands[0]));
  for (size_t i = 1; i < operands.size(); ++i) {
    const ValueId extent = g_[axes[(i - 1) % axes.size()]].size();
    if (!g_.is_constant(operands[i]) && !is_unclamped_bound(g_, operands[i], extent))
      clamped_.emplace(operands[i], extent);
  }
}

bool Rewriter::unclamps(ValueId v, ValueId by) const {
  const auto [begin, end] = clamped_.equal_range(v);
  return std::any_of(begin, end, [&](const auto& bound) { return is_unclamped_bound(g_, by, now(bound.second)); });
}

bool Rewriter::fits(ValueId v, ValueId by) const {
  return v != by && !unclamps(v, by) && is_replaceable(v) && !is_held(v) && g_[v].dtype == g_[by].dtype &&
         same_axes(v, by) && same_deciders(v, by) && !moves_operand(v, by);
}

bool Rewriter::take(ValueId v) {
  if (left_ <= 0 || is_held(v)) return false;
  --left_;
  taken_.push_back(v);
  return true;
}

bool Rewriter::may_replace(ValueId v) const {
  return is_replaceable(v) && is_read_[v.index] && !by_[v.index] && left_ > 0 && !is_held(v);
}

void Rewriter::replace(ValueId v, ValueId by) {
  if (by_[v.index] || !is_read_[v.index] || !take(v)) return;
  by_[v.index] = by;
}

void Rewriter::replace_together(std::span<const std::pair<ValueId, ValueId>> pairs) {
  if (pairs.empty() || std::ranges::any_of(pairs, [&](const auto& p) { return !may_replace(p.first); })) return;
  if (!take(pairs[0].first)) return;
  for (const auto& [v, by] : pairs) by_[v.index] = by;
}

void Rewriter::set_operands(OpId op, std::vector<ValueId> operands) {
  const ValueId v = g_[op].results[0];
  if (!g_.is_tensor(v) && operands != g_[op].operands) is_changed_[v.index] = true;
  g_[op].operands = std::move(operands);
  edited_.push_back(op);
}

bool Rewriter::has_changed(ValueId v) const {
  if (!v || v.index >= is_changed_.size()) return false;
  if (!g_.is_tensor(v)) return is_changed_[v.index] || by_[v.index];
  const ValueId by = now(v);
  return by.index < is_changed_.size() && is_changed_[by.index];
}

bool Rewriter::changes_extents() {
  bool any = false;
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    const auto has = [&](ValueId v) { return has_changed(v); };
    bool is_changed = std::any_of(op.operands.begin(), op.operands.end(), has);
    for_each_extent(g_, id, [&](ValueId v) { is_changed = is_changed || has(v); });
    if (!is_changed && !std::any_of(op.results.begin(), op.results.end(), has)) continue;
    for (ValueId v : op.results) is_changed_[v.index] = true;
    any = true;
  }
  return any;
}

bool Rewriter::finish() {
  if (taken_.empty()) return false;
  const bool is_other = changes_extents();
  const auto put = [&](ValueId& v) { v = now(v); };
  for (OpId op : g_[Graph::body()].ops) {
    for (ValueId& v : g_[op].operands) put(v);
    for_each_extent(g_, op, put);
  }
  return is_other;
}

namespace {

struct Attempt {
  std::optional<Graph> graph;  // none: inference does not accept what the changes make
  std::vector<ValueId> taken;
  bool has_inferred = false;  // results may have other extents, and more may fit
};

Attempt attempt(const Graph& g, const RewriteOptions& options, RewritePass pass, std::span<const ValueId> held) {
  Graph now = g;
  Rewriter r(now, options, held);
  pass(now, r, options);
  const bool must_infer = r.finish();
  std::vector<ValueId> taken = r.taken();
  return {must_infer ? accepted(g, std::move(now)) : std::optional(std::move(now)), std::move(taken), must_infer};
}

// The first of these changes that makes inference refuse the program.
ValueId first_refused(const Graph& g, RewriteOptions options, RewritePass pass, std::span<const ValueId> held,
                      std::span<const ValueId> taken) {
  size_t fine = 0, refused = taken.size();
  while (refused - fine > 1) {
    const size_t middle = fine + (refused - fine) / 2;
    options.limit = static_cast<int64_t>(middle);
    (attempt(g, options, pass, held).graph ? fine : refused) = middle;
  }
  return taken[refused - 1];
}

}  // namespace

bool rewrite_readers(Graph& g, RewriteOptions options, RewritePass pass) {
  for (bool changed = false;; changed = true) {
    std::vector<ValueId> held;
    Attempt a = attempt(g, options, pass, held);
    while (!a.graph) {
      held.push_back(first_refused(g, options, pass, held, a.taken));
      a = attempt(g, options, pass, held);
    }
    if (a.taken.empty()) return changed;
    g = compacted(*std::move(a.graph));
    options.limit -= static_cast<int64_t>(a.taken.size());
    if (held.empty() && !a.has_inferred) return true;
  }
}

}  // namespace fusebox
