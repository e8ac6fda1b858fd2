#include "passes/rewrite/finest_classes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/concretize.h"
#include "ir/infer/is_library.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/families.h"
#include "passes/rewrite/open_axes.h"

namespace fusebox {
namespace {

bool is_input(const Graph& g, ValueId v) { return g[v].def && g[g[v].def].kind == OpKind::kInput; }

// Whether the value is a slice of an input, or of such a slice: it lies in the input's memory.
bool is_slice_of_input(const Graph& g, ValueId v) {
  while (g[v].def && g[g[v].def].kind == OpKind::kSlice) {
    v = g[g[v].def].operands[0];
    if (is_input(g, v)) return true;
  }
  return false;
}

bool is_laid_out(const Tensor& t) {
  return !t.allocation.empty() || !t.contiguity.empty() || !t.devices.empty() || t.memory != MemoryType::kUnset;
}

bool is_distributed(const Graph& g, const Op& op) {
  const auto is_on_devices = [&](ValueId v) { return v && g.is_tensor(v) && !g.tensor_of(v).devices.empty(); };
  return std::ranges::any_of(op.operands, is_on_devices) || std::ranges::any_of(op.results, is_on_devices);
}

// Whether inputs may show that an axis of a tensor is an expanded broadcast, or one is already.
class Expansion {
 public:
  explicit Expansion(const Graph& g) : g_(g), open_(g) {}

  bool may_expand(ValueId v) {
    const auto known = known_.find(v);
    return known != known_.end() ? known->second : (known_[v] = has_expanding_axis(v));
  }

 private:
  bool has_expanding_axis(ValueId v) {
    for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v))) {
      if (g_[d].expanded) return true;
      const DomainId by = open_.decider(g_, d);
      if (!by) continue;
      // A reshape keeps what its operand's axes are.
      const Op& op = g_[g_[g_[g_[by].tensor].value].def];
      if (op.kind != OpKind::kReshape || may_expand(op.operands[0])) return true;
    }
    return false;
  }

  const Graph& g_;
  OpenAxes open_;
  std::map<ValueId, bool> known_;
};

}  // namespace

bool can_refine(const Graph& g, const Op& op) {
  if (is_distributed(g, op) || is_library(g, op)) return false;
  switch (op.kind) {
    case OpKind::kSegmentSet:
    case OpKind::kIota:
    case OpKind::kTriu:
      return false;
    // The place of an element in order, by which its random number is drawn, stays the same.
    case OpKind::kFull:
    case FUSEBOX_RANDOM_OPS:
    case FUSEBOX_REDUCTION_OPS:
    case OpKind::kBroadcast:
    case OpKind::kBroadcastInDim:
    case OpKind::kReshape:
    case OpKind::kPermute:
    case OpKind::kExpand:
    case OpKind::kSqueeze:
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kCat:
    case OpKind::kSelect:
    case OpKind::kIndexSelect:
    case OpKind::kTakeAlongAxis:
      return true;
    case FUSEBOX_MOMENT_OPS:
      return std::none_of(op.operands.begin() + 1, op.operands.end(), [](ValueId v) { return bool(v); });
    default:  // any other: if elements depend on elements alone
      return demands(op.kind, kPointwise) && family_of(op.kind) == AxisRule::kSame;
  }
}

FinestClasses::FinestClasses(const Graph& g)
    : is_live_(g.ops.size()),
      parent_(g.domains.size()),
      classes_(g.domains.size()),
      groups_(g.ops.size()),
      is_output_(g.values.size()) {
  std::iota(parent_.begin(), parent_.end(), 0u);
  find_live(g);
  for (OpId id : g[Graph::body()].ops) {
    if (!is_live(id)) continue;
    for (ValueId v : g[id].results)
      if (g.is_tensor(v)) learn_axes(g, v);
    if (g[id].kind == OpKind::kReshape) groups_[id.index] = axes_of_reshape(g, id);
    learn_op(g, id);
  }
  learn_outputs(g);
  for (OpId id : g[Graph::body()].ops)
    for (const ReshapeGroup& group : groups_[id.index]) {
      if (group.splits()) refine(g, group.from[0], group.to);
      if (group.merges()) refine(g, group.to[0], group.from);
    }
  for (uint32_t i = 0; i < parent_.size(); ++i) parent_[i] = find(i);
  hold_cycles();
}

uint32_t FinestClasses::find(uint32_t i) const {
  while (parent_[i] != i) i = parent_[i];
  return i;
}

bool FinestClasses::has_refined(std::span<const DomainId> axes) const {
  return std::ranges::any_of(axes, [&](DomainId d) { return is_refined(d); });
}

bool FinestClasses::is_refined(const Graph& g, ValueId v) const {
  return g.is_tensor(v) && has_refined(logical_without_reductions(g, g.tensor_of(v)));
}

std::vector<DomainId> FinestClasses::leaves(DomainId axis) const {
  const uint32_t c = find(axis.index);
  if (!is_refined_class(c)) return {axis};
  std::vector<DomainId> result;
  for (DomainId part : classes_[c].parts) {
    const auto more = leaves(part);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

// -- what is known of axes

void FinestClasses::find_live(const Graph& g) {
  const auto& ops = g[Graph::body()].ops;
  std::vector<bool> is_needed(g.values.size());
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = g[ops[i]];
    if (op.kind == OpKind::kOutput) is_output_[op.operands[0].index] = true;
    const bool is_live = demands(op.kind, kEffect | kSignature) ||
                         std::ranges::any_of(op.results, [&](ValueId v) { return bool(is_needed[v.index]); });
    is_live_[ops[i].index] = is_live;
    for (ValueId v : op.operands)
      if (v && is_live) is_needed[v.index] = true;
  }
}

void FinestClasses::hold_all(const Graph& g, ValueId v) {
  if (!v || !g.is_tensor(v)) return;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(v))) hold(d);
}

void FinestClasses::learn_axes(const Graph& g, ValueId v) {
  const OpKind kind = g[g[v].def].kind;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(v))) {
    const IterDomain& axis = g[d];
    const bool is_open =
        axis.iter_type == IterType::kSymbolic && kind != OpKind::kReshape && has_own_symbolic_axes(kind);
    if (axis.expanded || is_open) hold(d);
    // A reshape stands right behind an input, so its other axes must be known to stay what they are.
    if ((axis.expanded || is_open) && kind == OpKind::kInput) hold_all(g, v);
    if (axis.iter_type == IterType::kBroadcast) continue;
    if (!size_form(g, d)) hold(d);
  }
  const Tensor& t = g.tensor_of(v);
  if (kind == OpKind::kInput ? !t.devices.empty() || t.memory != MemoryType::kUnset : is_laid_out(t)) hold_all(g, v);
}

void FinestClasses::learn_op(const Graph& g, OpId id) {
  const Op& op = g[id];
  if (demands(op.kind, kSignature)) return;
  if (!can_refine(g, op)) {
    for (ValueId v : op.operands) hold_all(g, v);
    for (ValueId v : op.results) hold_all(g, v);
    return;
  }
  for (const ReshapeGroup& group : groups_[id.index])
    if (group.keeps()) unite(g, group.from[0], group.to[0]);
  if (op.kind == OpKind::kReshape) return;
  for (size_t k = 0; k < op.operands.size(); ++k)
    for (size_t r = 0; r < op.results.size(); ++r)
      if (op.operands[k] && g.is_tensor(op.operands[k]) && g.is_tensor(op.results[r])) learn_operand(g, op, k, r);
}

void FinestClasses::learn_operand(const Graph& g, const Op& op, size_t operand, size_t result) {
  const auto axes = logical_without_reductions(g, g.tensor_of(op.operands[operand]));
  const Tensor& made = g.tensor_of(op.results[result]);
  const auto& root = root_of(made);
  const auto relation = axis_relation(g, op, operand, result);
  if (relation.size() != axes.size()) return hold_all(g, op.operands[operand]);
  const bool is_source = op.kind == OpKind::kSlice && is_source_of_its_own(g, op);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t to = relation[i].result;
    const bool is_made = to < root.size();
    switch (relation[i].relation) {
      case AxisRelation::kReduced:
      case AxisRelation::kDropped:
        break;
      case AxisRelation::kSame:
      case AxisRelation::kBroadcast:
      case AxisRelation::kResized:
        if (is_made && root[to] == made.logical[to]) {
          unite(g, axes[i], root[to]);
          break;
        }
        hold(axes[i]);
        if (is_made && !is_source) hold(made.logical[to]);
        break;
      case AxisRelation::kNone:
      case AxisRelation::kRegrouped:
      case AxisRelation::kWithin:
      case AxisRelation::kJoined:
      case AxisRelation::kChosen:
        hold(axes[i]);
        if (is_made) hold(made.logical[to]);
        break;
    }
  }
}

// A slice of an input can be split as an input is. But it is none if an axis of it may turn out to be expanded.
bool FinestClasses::is_source_of_its_own(const Graph& g, const Op& slice) const {
  const auto is_fixed = [&](DomainId d) {
    return !g[d].expanded && g[d].iter_type != IterType::kSymbolic && size_form(g, d);
  };
  const auto axes = logical_without_reductions(g, g.tensor_of(slice.results[0]));
  const auto from = logical_without_reductions(g, g.tensor_of(slice.operands[0]));
  return is_slice_of_input(g, slice.results[0]) && std::ranges::all_of(axes, is_fixed) &&
         std::ranges::all_of(from, is_fixed);
}

void FinestClasses::learn_outputs(const Graph& g) {
  Expansion expansion(g);
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (out.alias || is_laid_out(g.tensor_of(out.value)) || expansion.may_expand(out.value)) hold_all(g, out.value);
    hold_all(g, out.alias);
  }
}

// -- classes

bool FinestClasses::are_alike(const Graph& g, std::span<const DomainId> a, std::span<const DomainId> b) const {
  return std::ranges::equal(a, b, [&](DomainId x, DomainId y) {
    const auto p = size_form(g, x), q = size_form(g, y);
    return p && q && p->equals(*q);
  });
}

void FinestClasses::unite(const Graph& g, DomainId a, DomainId b) {
  const uint32_t x = find(a.index), y = find(b.index);
  if (a.index != x) parent_[a.index] = x;
  if (b.index != y) parent_[b.index] = y;
  if (x == y) return;
  const uint32_t to = std::min(x, y), from = std::max(x, y);
  parent_[from] = to;
  Class& c = classes_[to];
  Class other = std::move(classes_[from]);
  c.is_held = c.is_held || other.is_held;
  if (!other.parts.empty()) refine(g, DomainId(to), other.parts);
}

void FinestClasses::refine(const Graph& g, DomainId axis, const std::vector<DomainId>& parts) {
  Class& c = classes_[find(axis.index)];
  if (c.parts.empty()) {
    c.parts = parts;
    return;
  }
  if (!are_alike(g, c.parts, parts)) {
    c.is_held = true;
    return;
  }
  const std::vector<DomainId> own = c.parts;
  for (size_t i = 0; i < own.size(); ++i) unite(g, own[i], parts[i]);
}

// A class cannot be a part of itself.
void FinestClasses::hold_cycles() {
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> states(classes_.size());
  const std::function<void(uint32_t)> visit = [&](uint32_t c) {
    states[c] = State::kOpen;
    for (DomainId part : classes_[c].parts) {
      const uint32_t p = find(part.index);
      if (states[p] == State::kOpen) classes_[p].is_held = true;
      if (states[p] == State::kNew && is_refined_class(p)) visit(p);
    }
    states[c] = State::kDone;
  };
  for (uint32_t i = 0; i < classes_.size(); ++i)
    if (find(i) == i && states[i] == State::kNew && is_refined_class(i)) visit(i);
}

// -- whether it pays

bool FinestClasses::is_on_boundary(const Graph& g, const Op& op) const {
  if (cuts_refined(g, op)) return true;
  if (op.kind != OpKind::kReshape) return false;
  const ValueId from = op.operands[0];
  return ((is_input(g, from) || is_slice_of_input(g, from)) && !is_refined(g, op.results[0])) ||
         (is_output_[op.results[0].index] && !is_refined(g, op.operands[0]));
}

bool FinestClasses::changes_ops(const Graph& g) const {
  return std::ranges::any_of(g[Graph::body()].ops, [&](OpId id) {
    const Op& op = g[id];
    const auto has_finer = [&](ValueId v) { return v && is_refined(g, v); };
    return is_live(id) && !demands(op.kind, kSignature) && !is_on_boundary(g, op) &&
           (std::ranges::any_of(op.operands, has_finer) || std::ranges::any_of(op.results, has_finer));
  });
}

bool FinestClasses::cuts_refined(const Graph& g, const Op& op) const {
  if (op.kind != OpKind::kSlice) return false;
  const Tensor& made = g.tensor_of(op.results[0]);
  const auto& root = root_of(made);
  for (size_t i = 0; i < root.size() && i < made.logical.size(); ++i)
    if (root[i] != made.logical[i] && is_refined(made.logical[i])) return true;
  return false;
}

bool FinestClasses::is_worthwhile(const Graph& g) const {
  if (!changes_ops(g)) return false;
  const auto moves = [&](OpId id) {
    return std::ranges::any_of(groups_[id.index], [&](const ReshapeGroup& group) {
      return (group.splits() && is_refined(group.from[0])) || (group.merges() && is_refined(group.to[0]));
    });
  };
  const auto& ops = g[Graph::body()].ops;
  std::vector<bool> is_behind(g.values.size()), is_in_front(g.values.size());
  for (OpId id : ops) {
    const Op& op = g[id];
    if (!is_live(id)) continue;
    const bool follows = std::ranges::any_of(op.operands, [&](ValueId v) { return v && is_behind[v.index]; });
    if (follows && demands(op.kind, kReduction)) return true;
    if (follows || moves(id))
      for (ValueId v : op.results) is_behind[v.index] = true;
  }
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = g[ops[i]];
    if (!is_live(ops[i])) continue;
    const bool leads = std::ranges::any_of(op.results, [&](ValueId v) { return bool(is_in_front[v.index]); });
    if (leads && demands(op.kind, kReduction)) return true;
    if (leads || moves(ops[i]))
      for (ValueId v : op.operands)
        if (v) is_in_front[v.index] = true;
  }
  return false;
}

}  // namespace fusebox
