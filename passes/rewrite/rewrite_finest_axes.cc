// finest_axes: the ops between the inputs and the outputs compute with axes that no reshape between them splits or merges.
// An input is split right where it is read, and an output is merged where it is made; both are views of memory. So a
// reduction and what stands in front of it and behind it can be one kernel.
//
//   // %t = cast %x; %g = reshape %t to [%n, 32, %cg]; %m = sum %g over [2]; %y = reshape (sub %g, %m) to [%n, %c]
//   // becomes
//   // %xr = reshape %x to [%n, 32, %cg]; %g = cast %xr; %m = sum %g over [2]; %y = reshape (sub %g, %m) to [%n, %c]
//
// A merged axis that is reduced becomes several reduced axes, whose elements are in the same order; only how many of them a
// kernel adds at once before it goes on may differ, so sums are within bounds.
//
// FinestClasses says which axes become which. Ops whose results have finer axes are made anew, and the old ones stay until
// dead_code runs, but for those that made an output: this becomes a reshape. Other ops only read finer operands.
//
// The rewrite of all axes is one replacement. It does nothing if an extent is not known where it is needed.
//
// A run without elements may have extents that divide nothing: [0, 70] becomes [0, 32, 2] as well. The rewritten program
// refuses it (E0407) if another tensor of the axis has elements, such as weights of 70, so a caller must be ready to leave
// the rewrite out.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "ir/domain/axis_relation.h"
#include "ir/graph/compact.h"
#include "ir/infer/concretize.h"
#include "ir/infer/infer.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/rewrite/finest_classes.h"
#include "passes/rewrite/rewrite.h"

namespace fusebox {
namespace {

using Values = std::vector<ValueId>;
using Ints = std::vector<int64_t>;

// A scalar is needed in front of the op that makes it.
struct NotYetKnown {};

// Whether an op computes a scalar from scalars, so that it may stand anywhere behind them.
bool computes_scalar(const Graph& g, const Op& op) {
  return op.results.size() == 1 && !g.is_tensor(op.results[0]) && op.regions.empty() && demands(op.kind, kPointwise) &&
         std::ranges::none_of(op.operands, [&](ValueId v) { return v && g.is_tensor(v); });
}

class Refiner {
 public:
  Refiner(Graph& g, const FinestClasses& finest) : g_(g), finest_(finest), old_values_(g.values.size()) {
    is_known_.resize(old_values_);
    is_stale_.resize(old_values_);
    is_output_.resize(old_values_);
    now_.resize(old_values_);
    axes_.resize(old_values_);
    for (size_t i = 0; i < old_values_; ++i)
      if (g.is_tensor(ValueId(i))) axes_[i] = logical_without_reductions(g, g.tensor_of(ValueId(i)));
    for (const OutputRef& out : outputs(g)) is_output_[out.value.index] = true;
  }

  // Makes the body anew. Throws NotYetKnown.
  void run() {
    const std::vector<OpId> ops = std::exchange(g_[Graph::body()].ops, {});
    hoist_scalars(ops);
    for (OpId id : ops) {
      if (computes_scalar(g_, g_[id])) continue;
      emit(id);
      if (demands(g_[id].kind, kSignature)) hoist_scalars(ops);
    }
  }

 private:
  // -- scalars

  bool is_known(ValueId v) const { return !v || g_.is_constant(v) || v.index >= old_values_ || is_known_[v.index]; }

  // Adds the scalars that can be computed now.
  void hoist_scalars(const std::vector<OpId>& ops) {
    for (OpId id : ops) {
      const Op& op = g_[id];
      if (!computes_scalar(g_, op) || is_known(op.results[0]) ||
          !std::ranges::all_of(op.operands, [&](ValueId v) { return is_known(v); }))
        continue;
      put(id);
    }
  }

  void put(OpId id) {
    g_[Graph::body()].ops.push_back(id);
    for (ValueId v : g_[id].results) {
      g_[v].def = id;
      if (v.index < old_values_) is_known_[v.index] = true;
    }
  }

  void need(DomainId d) const {
    const IterDomain& axis = g_[d];
    if (!is_known(axis.expanded) || !is_known(axis.extent)) throw NotYetKnown();
    if (axis.extent || !axis.def) return;
    const Transform& t = g_[axis.def];
    if (!is_known(t.factor) || !is_known(t.right)) throw NotYetKnown();
    for (DomainId input : t.inputs) need(input);
  }

  // The sizes of the axes that this axis becomes.
  Values finer_sizes(DomainId axis) {
    const auto leaves = finest_.leaves(axis);
    if (is_unit_axis(g_, axis)) return Values(leaves.size(), constant_index(g_, 1));
    Values result;
    for (DomainId leaf : leaves) {
      need(leaf);
      const auto it = sizes_.find(finest_.class_of(leaf));
      result.push_back(it != sizes_.end() ? it->second : emit_size(g_, Graph::body(), leaf));
      if (finest_.is_refined(axis)) sizes_.emplace(finest_.class_of(leaf), result.back());
    }
    return result;
  }

  Values finer_shape(ValueId v) {
    Values result;
    for (DomainId d : axes_[v.index]) append(result, finer_sizes(d));
    return result;
  }

  // -- positions

  size_t width(DomainId axis) const { return finest_.leaves(axis).size(); }

  // The axes that these axes of an old tensor become, by number.
  Ints finer_axes(ValueId v, std::span<const int64_t> axes) const {
    const auto& old = axes_[v.index];
    Ints result;
    for (int64_t axis : axes) {
      const size_t at = named_axis(axis, old.size());
      int64_t first = 0;
      for (size_t i = 0; i < at; ++i) first += static_cast<int64_t>(width(old[i]));
      for (size_t k = 0; k < width(old[at]); ++k) result.push_back(first + static_cast<int64_t>(k));
    }
    return result;
  }

  template <class T>
  static void append(std::vector<T>& to, const std::vector<T>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  // -- values

  // What readers of the value read now. An input is split when it is first read.
  ValueId now(ValueId v) {
    if (!v || !g_.is_tensor(v)) return v;
    if (!now_[v.index] && finest_.has_refined(axes_[v.index]) && g_[g_[v].def].kind == OpKind::kInput)
      now_[v.index] = made(reshape_of(v, finer_shape(v)), v);
    return now_[v.index] ? now_[v.index] : v;
  }

  Op reshape_of(ValueId v, const Values& shape) const {
    Op op;
    op.kind = OpKind::kReshape;
    op.operands = {v};
    op.operands.insert(op.operands.end(), shape.begin(), shape.end());
    return op;
  }

  // Appends an op, whose one result stands for `old`.
  ValueId made(Op op, ValueId old) {
    op.results = {add_tensor(g_, g_[old].dtype, g_[old].name + "_finest")};
    const ValueId v = op.results[0];
    infer_op(fusebox::append(g_, Graph::body(), std::move(op)));
    return v;
  }

  // An axis that was resolved must not become symbolic again.
  void infer_op(OpId id) {
    const auto open = [&] { return g_[id].results.empty() ? 0 : symbolic_axes(g_, g_[id].results[0]); };
    const bool resolves = g_[id].kind == OpKind::kReshape || stretches(g_[id].kind);
    const ValueId v = g_[id].results[0];
    const size_t before = resolves && v.index < old_values_ && !is_output_[v.index] ? open() : SIZE_MAX;
    infer(g_, id);
    if (before != SIZE_MAX && open() > before) throw NotYetKnown();
  }

  void infer_in_place(OpId id) {
    put(id);
    infer_op(id);
    for (ValueId v : g_[id].results) is_stale_[v.index] = true;
  }

  // -- ops

  bool has_finer_axes(ValueId v) const { return v && g_.is_tensor(v) && finest_.has_refined(axes_[v.index]); }

  void emit(OpId id) {
    const OpKind kind = g_[id].kind;
    if (demands(kind, kSignature)) return put(id);
    const auto is_stale = [&](ValueId v) { return v && is_stale_[v.index]; };
    if (!finest_.is_live(id)) return std::ranges::any_of(g_[id].operands, is_stale) ? infer_in_place(id) : put(id);
    const auto is_finer = [&](ValueId v) { return has_finer_axes(v); };
    const bool makes_finer = std::ranges::any_of(g_[id].results, is_finer);
    if (!makes_finer && std::ranges::none_of(g_[id].operands, is_finer)) return emit_same(id);
    if (kind == OpKind::kReshape && emit_vanished(id)) return;
    if (finest_.cuts_refined(g_, g_[id])) {
      const ValueId v = g_[id].results[0];
      put(id);
      now_[v.index] = made(reshape_of(v, finer_shape(v)), v);
      return;
    }
    Op op = finer(id);
    if (!makes_finer) {
      g_[id] = std::move(op);
      return infer_in_place(id);
    }
    const Values old = op.results;
    for (ValueId& v : op.results) v = add_tensor(g_, g_[v].dtype, g_[v].name + "_finest");
    const Values results = op.results;
    infer_op(fusebox::append(g_, Graph::body(), std::move(op)));
    for (size_t i = 0; i < old.size(); ++i) now_[old[i].index] = results[i];
    keep_old(id);
  }

  // The op's axes stay, but its operands may be others now.
  void emit_same(OpId id) {
    bool is_other = false;
    for (size_t k = 0; k < g_[id].operands.size(); ++k) {
      const ValueId before = g_[id].operands[k], after = now(before);
      g_[id].operands[k] = after;
      is_other = is_other || before != after || (before && before.index < old_values_ && is_stale_[before.index]);
    }
    is_other ? infer_in_place(id) : put(id);
  }

  // Keeps an op that nothing needs any more, or lets reshapes of what stands for its results make these.
  void keep_old(OpId id) {
    const Values results = g_[id].results;
    if (std::ranges::none_of(results, [&](ValueId v) { return bool(is_output_[v.index]); })) {
      const auto is_stale = [&](ValueId v) { return v && is_stale_[v.index]; };
      return std::ranges::any_of(g_[id].operands, is_stale) ? infer_in_place(id) : put(id);
    }
    for (ValueId v : results) {
      Values shape;
      for (DomainId d : axes_[v.index]) {
        need(d);
        shape.push_back(emit_size(g_, Graph::body(), d));
      }
      Op op = reshape_of(now_[v.index], shape);
      op.results = {v};
      if (v == results[0])
        g_[id] = std::move(op);
      else
        g_.ops.push_back(std::move(op));
      infer_in_place(v == results[0] ? id : OpId(g_.ops.size() - 1));
    }
  }

  // The op with finer axes, and the results of the old one.
  Op finer(OpId id) {
    Op op = g_[id];
    const ValueId from = op.operands.empty() ? ValueId() : op.operands[0], to = op.results[0];
    for (ValueId& v : op.operands) v = now(v);
    set_finer_attrs(op, from, to);
    const FormatRow& format = *row_of(op.kind).format;
    const auto slots = slot_ranges(format, op.operands.size());
    Values operands;
    for (size_t s = 0; slots && s < static_cast<size_t>(format.slot_count); ++s) {
      const auto [begin, count] = (*slots)[s];
      const auto given = std::span(op.operands).subspan(begin, count);
      if (!format.slots[s].list || format.slots[s].kind != 's')
        operands.insert(operands.end(), given.begin(), given.end());
      else
        append(operands, finer_list(op.kind, format.slots[s].keyword, given, to));
    }
    op.operands = std::move(operands);
    return op;
  }

  void set_finer_attrs(Op& op, ValueId from, ValueId to) const {
    const auto set = [&](AttrKey key, ValueId of) {
      if (op.attrs.has(key))
        op.attrs.set(key, finer_axes(of, Ints(op.attrs.ints(key).begin(), op.attrs.ints(key).end())));
    };
    set(AttrKey::kAxes, from);
    set(AttrKey::kDims, op.kind == OpKind::kPermute ? from : to);
    if (op.attrs.has(AttrKey::kAxis))
      op.attrs.set(AttrKey::kAxis, finer_axes(from, {{op.attrs.integer(AttrKey::kAxis)}})[0]);
    if (!op.attrs.has(AttrKey::kMask)) return;
    Ints mask;
    const auto old = op.attrs.ints(AttrKey::kMask);
    for (size_t i = 0; i < old.size(); ++i) mask.insert(mask.end(), width(axes_[to.index][i]), old[i]);
    op.attrs.set(AttrKey::kMask, std::move(mask));
  }

  // A list of scalars with one for each axis of the result, or two.
  Values finer_list(OpKind kind, std::string_view keyword, std::span<const ValueId> given, ValueId to) {
    const auto& axes = axes_[to.index];
    const bool is_pad = kind == OpKind::kPad;  // innermost axis first
    Values result;
    for (size_t i = 0; i < axes.size(); ++i) {
      const DomainId axis = axes[is_pad ? axes.size() - 1 - i : i];
      if (!finest_.is_refined(axis)) {
        const auto own = is_pad ? given.subspan(2 * i, 2) : given.subspan(i, 1);
        result.insert(result.end(), own.begin(), own.end());
      } else if (is_pad) {
        result.insert(result.end(), 2 * width(axis), constant_index(g_, 0));
      } else if (kind == OpKind::kSlice && keyword != "to") {
        result.insert(result.end(), width(axis), constant_index(g_, keyword == "by" ? 1 : 0));
      } else if (constant_integer(g_, given[i]) == -1) {
        result.insert(result.end(), width(axis), given[i]);
      } else {
        append(result, finer_sizes(axis));
      }
    }
    return result;
  }

  // -- reshapes that leave nothing to move

  enum : uint32_t { kUnit = 0xffffffffu, kOtherUnit = 0xfffffffeu };

  // The classes of a tensor's finer axes, units among them, and the axes.
  struct Place {
    uint32_t class_index = kUnit;
    DomainId axis;
  };
  std::vector<Place> finer_places(ValueId v) const {
    std::vector<Place> result;
    for (DomainId d : axes_[v.index]) {
      const bool is_unit = is_unit_axis(g_, d);
      for (DomainId leaf : finest_.leaves(d))
        result.push_back({!is_unit                                  ? finest_.class_of(leaf)
                          : g_[d].iter_type == IterType::kBroadcast ? uint32_t{kUnit}
                                                                    : uint32_t{kOtherUnit},
                          leaf});
    }
    return result;
  }

  bool is_same_place(const Place& a, const Place& b) const {
    if (a.class_index != b.class_index) return false;
    if (a.class_index == kUnit) return true;
    const auto p = size_form(g_, a.axis), q = size_form(g_, b.axis);
    return p && q && p->equals(*q);
  }

  // Lets the operand, without its units or with other ones, stand for the result, if the finer axes of both are the same.
  bool emit_vanished(OpId id) {
    const ValueId from = g_[id].operands[0], to = g_[id].results[0];
    auto before = finer_places(from), after = finer_places(to);
    const auto is_same = [&](const Place& a, const Place& b) { return is_same_place(a, b); };
    ValueId v = now(from);
    if (!std::ranges::equal(before, after, is_same)) {
      Ints dropped, mask;
      for (size_t i = 0; i < before.size(); ++i)
        if (before[i].class_index == kUnit) dropped.push_back(static_cast<int64_t>(i));
      for (const Place& p : after) mask.push_back(p.class_index == kUnit ? 1 : 0);
      const auto is_unit = [](const Place& p) { return p.class_index == kUnit; };
      std::erase_if(before, is_unit);
      std::erase_if(after, is_unit);
      if (!std::ranges::equal(before, after, is_same)) return false;
      if (!dropped.empty()) v = made(with_ints(OpKind::kSqueeze, v, AttrKey::kAxes, std::move(dropped)), to);
      if (std::ranges::find(mask, 1) != mask.end())
        v = made(with_ints(OpKind::kBroadcast, v, AttrKey::kMask, std::move(mask)), to);
    }
    now_[to.index] = v;
    if (has_finer_axes(to) || !is_output_[to.index]) {
      keep_old(id);
      return true;
    }
    g_[id].kind = OpKind::kSet;
    g_[id].operands = {v};
    infer_in_place(id);
    return true;
  }

  static Op with_ints(OpKind kind, ValueId v, AttrKey key, Ints ints) {
    Op op;
    op.kind = kind;
    op.operands = {v};
    op.attrs.set(key, std::move(ints));
    return op;
  }

  Graph& g_;
  const FinestClasses& finest_;
  const size_t old_values_;
  std::vector<bool> is_known_, is_stale_, is_output_;  // by old value; stale: inferred again
  Values now_;                                         // by old value; none: itself
  std::vector<std::vector<DomainId>> axes_;            // by old value, as the classes know them
  std::map<uint32_t, ValueId> sizes_;                  // by class
};

bool has_op(const Graph& g, auto is_one) {
  return std::ranges::any_of(g[Graph::body()].ops, [&](OpId id) { return is_one(g[id].kind); });
}

// One replacement. Nothing if nothing changes.
std::optional<Graph> refined(const Graph& g) {
  if (!has_op(g, [](OpKind kind) { return kind == OpKind::kReshape; }) ||
      !has_op(g, [](OpKind kind) { return demands(kind, kReduction); }))
    return std::nullopt;
  const FinestClasses finest(g);
  if (!finest.is_worthwhile(g)) return std::nullopt;
  Graph now = g;
  try {
    Refiner(now, finest).run();
  } catch (const NotYetKnown&) {
    return std::nullopt;
  }
  // Without the reshapes between, an output may turn out to be an expanded broadcast, or only sizes tell whether it is one.
  // Such an output overwrites nothing.
  const auto may_be_expanded = [&](DomainId d) { return now[d].expanded || now[d].iter_type == IterType::kSymbolic; };
  for (const OutputRef& out : outputs(now)) {
    if (!out.alias || !now.is_tensor(out.value)) continue;
    const Tensor& t = now.tensor_of(out.value);
    if (std::ranges::any_of(t.logical, may_be_expanded) || std::ranges::any_of(root_of(t), may_be_expanded))
      return std::nullopt;
  }
  return compacted(std::move(now));
}

}  // namespace

// What one replacement has made may let another one follow, as where an axis was held by a class that is now two.
bool finest_axes(Graph& g, const RewriteOptions& options) {
  constexpr int64_t kMostRounds = 16;
  bool changed = false;
  for (int64_t left = std::min(options.limit, kMostRounds); left > 0; --left) {
    auto next = refined(g);
    if (!next) break;
    g = *std::move(next);
    changed = true;
  }
  return changed;
}

}  // namespace fusebox
