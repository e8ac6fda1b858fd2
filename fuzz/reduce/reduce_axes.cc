#include "fuzz/reduce/reduce_axes.h"

#include <algorithm>
#include <set>

#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/reduce/reduce_rules.h"
#include "ir/domain/axis_relation.h"

namespace fusebox::fuzz {
namespace {

// Splits a reshape into groups of axes with equal products. An axis of extent 1 is a group of its own.
void link_reshape(const std::vector<int64_t>& from, const std::vector<int64_t>& to, AxisLinks& links) {
  size_t i = 0, j = 0;
  const auto fix_rest = [&] {
    for (; i < from.size(); ++i) links.fixed.emplace_back(0, i);
    for (; j < to.size(); ++j) links.fixed_results.push_back(j);
  };
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && j < to.size() && from[i] == to[j]) {
      links.links.push_back({0, i++, j++});
      continue;
    }
    if (i < from.size() && from[i] == 1) {
      links.groups.push_back({{i++}, {}});
      continue;
    }
    if (j < to.size() && to[j] == 1) {
      links.groups.push_back({{}, {j++}});
      continue;
    }
    if (i == from.size() || j == to.size()) return fix_rest();
    AxisLinks::Group group{{i}, {j}};
    int64_t a = from[i++], b = to[j++];
    while (a != b) {
      if (a == 0 || b == 0 || (a < b && i == from.size()) || (b < a && j == to.size())) {
        for (size_t x : group.axes) links.fixed.emplace_back(0, x);
        for (size_t x : group.results) links.fixed_results.push_back(x);
        return fix_rest();
      }
      if (a < b)
        group.axes.push_back(i), a *= from[i++];
      else
        group.results.push_back(j), b *= to[j++];
    }
    links.groups.push_back(std::move(group));
  }
}

// Removes axes from an op, if the op permits it.
class AxisRemoval {
 public:
  AxisRemoval(const Graph& g, const std::set<AxisOf>& removed) : g_(g), removed_(removed) {}

  bool change(OpId id, FusionChange& change) const {
    const Op& op = g_[id];
    OpPatch patch{{}, op.attrs};
    const ValueId x = op.operands.empty() ? ValueId() : op.operands[0], y = op.results[0];
    const bool has_tensor = x && g_.is_tensor(x);
    const size_t rank = has_tensor ? rank_of(g_, x) : 0, result_rank = rank_of(g_, y);
    if (op.attrs.has(AttrKey::kAxes)) {
      std::vector<int64_t> axes;
      for (int64_t a : op.attrs.ints(AttrKey::kAxes))
        if (!gone(x, axis_from(a, rank))) axes.push_back(static_cast<int64_t>(place(x, axis_from(a, rank))));
      if (axes.empty() && !op.attrs.ints(AttrKey::kAxes).empty()) return replace(id, change);
      patch.attrs.set(AttrKey::kAxes, axes);
    }
    if (op.attrs.has(AttrKey::kMask)) {
      const auto mask = op.attrs.ints(AttrKey::kMask);
      std::vector<int64_t> kept;
      for (size_t i = 0; i < mask.size(); ++i)
        if (!gone(y, i)) kept.push_back(mask[i]);
      if (std::find(kept.begin(), kept.end(), 1) == kept.end()) return replace(id, change);
      patch.attrs.set(AttrKey::kMask, kept);
    }
    if (op.attrs.has(AttrKey::kDims)) {
      const auto dims = op.attrs.ints(AttrKey::kDims);
      std::vector<int64_t> kept;
      for (size_t i = 0; i < dims.size(); ++i) {
        const ValueId of = op.kind == OpKind::kPermute ? x : y;  // the list names axes of this value
        const size_t axis = axis_from(dims[i], op.kind == OpKind::kPermute ? rank : result_rank);
        if (!gone(of, axis)) kept.push_back(static_cast<int64_t>(place(of, axis)));
      }
      patch.attrs.set(AttrKey::kDims, kept);
    }
    if (op.attrs.has(AttrKey::kOrder)) {
      const auto order = op.attrs.ints(AttrKey::kOrder);
      std::vector<int64_t> kept;
      for (size_t i = 0; i < order.size(); ++i) {
        if (gone(x, i)) continue;
        int64_t before = 0;
        for (size_t k = 0; k < order.size(); ++k) before += !gone(x, k) && order[k] < order[i];
        kept.push_back(before);
      }
      patch.attrs.set(AttrKey::kOrder, kept);
    }
    if (op.attrs.has(AttrKey::kAxis)) {
      const ValueId of = op.kind == OpKind::kCat ? y : x;
      const size_t axis = axis_from(op.attrs.integer(AttrKey::kAxis), rank_of(g_, of));
      if (gone(of, axis)) return false;
      patch.attrs.set(AttrKey::kAxis, static_cast<int64_t>(place(of, axis)));
    }
    operands(op, y, patch);
    change.patched[id] = std::move(patch);
    return true;
  }

  bool gone(ValueId v, size_t axis) const { return removed_.contains({v, axis}); }

 private:
  size_t place(ValueId v, size_t axis) const {
    size_t result = axis;
    for (size_t i = 0; i < axis; ++i) result -= gone(v, i);
    return result;
  }

  static bool replace(OpId id, FusionChange& change, ValueId by) {
    change.replaced[id] = by;
    return true;
  }
  bool replace(OpId id, FusionChange& change) const {
    return g_[id].results.size() == 1 && replace(id, change, g_[id].operands[0]);
  }

  // Adapts operand lists with one number for each axis of the result, or with two in a pad.
  void operands(const Op& op, ValueId y, OpPatch& patch) const {
    const auto slots = slot_ranges(*row_of(op.kind).format, op.operands.size());
    for (size_t k = 0; slots && k < row_of(op.kind).format->all().size(); ++k) {
      const SlotRange range = (*slots)[k];
      const bool per_axis = row_of(op.kind).format->slots[k].list && op.kind != OpKind::kCat;
      for (size_t i = 0; i < range.count; ++i) {
        const size_t axis = op.kind == OpKind::kPad ? rank_of(g_, y) - 1 - i / 2 : i;
        if (per_axis && gone(y, axis)) continue;
        const ValueId v = op.operands[range.begin + i];
        patch.operands.push_back(v ? Scalar(v) : Scalar(kAbsent));
      }
    }
  }

  const Graph& g_;
  const std::set<AxisOf>& removed_;
};

// The axes that can only go together, keyed by the first of them. Leaves out axes that cannot go.
std::map<AxisOf, std::vector<AxisOf>> removable_axes(const Graph& g, const Bindings& sizes) {
  AxisClasses classes;
  std::vector<AxisOf> fixed, all;
  const auto add = [&](ValueId v) {
    for (size_t i = 0; i < rank_of(g, v); ++i) all.emplace_back(v, i);
  };
  for (ValueId v : inputs(g))
    if (g.is_tensor(v)) add(v);
  for (OpId id : tensor_ops(g)) {
    const Op& op = g[id];
    const AxisLinks links = axis_links(g, id, sizes);
    for (ValueId y : op.results) {
      add(y);
      for (const AxisLink& l : links.links) classes.unite({op.operands[l.operand], l.axis}, {y, l.result});
      for (size_t i = 0; i < rank_of(g, y); ++i) classes.unite({op.results[0], i}, {y, i});
      for (size_t i : links.fixed_results) fixed.emplace_back(y, i);
    }
    for (const auto& [operand, axis] : links.fixed) fixed.emplace_back(op.operands[operand], axis);
    for (const auto& group : links.groups) {
      std::vector<AxisOf> members;
      for (size_t i : group.axes) members.emplace_back(op.operands[0], i);
      for (size_t i : group.results) members.emplace_back(op.results[0], i);
      for (const AxisOf& m : members) classes.unite(members[0], m);
    }
    // The operands of a welford triple are reduced alike.
    for (size_t k = 1; k < op.operands.size(); ++k)
      if (demands(op.kind, kReduction) && op.operands[k])
        for (size_t i = 0; i < rank_of(g, op.operands[0]); ++i) classes.unite({op.operands[0], i}, {op.operands[k], i});
  }
  std::set<AxisOf> stuck;
  for (const AxisOf& a : fixed) stuck.insert(classes.find(a));
  std::map<AxisOf, std::vector<AxisOf>> result;
  for (const AxisOf& a : all)
    if (!stuck.contains(classes.find(a))) result[classes.find(a)].push_back(a);
  return result;
}

bool delete_axis(Case& to, const std::string& name, size_t axis) {
  const Graph& g = to.fusion();
  const auto v = find_value(g, name);
  if (!v) return false;
  const auto classes = removable_axes(g, sizes_of(g, to.inputs()));
  std::set<AxisOf> removed;
  for (const auto& [first, members] : classes)
    if (std::find(members.begin(), members.end(), AxisOf{*v, axis}) != members.end())
      removed.insert(members.begin(), members.end());
  if (removed.empty()) return false;
  FusionChange change;
  const AxisRemoval removal(g, removed);
  std::map<std::string, std::vector<bool>> renamed;
  const auto touched = [&](ValueId x) {
    return x && g.is_tensor(x) && removed.lower_bound({x, 0}) != removed.end() &&
           removed.lower_bound({x, 0})->first == x;
  };
  for (ValueId x : inputs(g)) {
    if (!touched(x)) continue;
    std::vector<bool>& list = renamed[g[x].name];
    for (size_t i = 0; i < rank_of(g, x); ++i) {
      list.push_back(removal.gone(x, i));
      if (list.back()) change.removed_axes[x].insert(i);
    }
  }
  for (OpId id : tensor_ops(g)) {
    const Op& op = g[id];
    const bool reads = std::any_of(op.operands.begin(), op.operands.end(), touched);
    if (!reads && !touched(op.results[0])) continue;
    if (!removal.change(id, change)) return false;
    for (ValueId y : op.results) {
      // The logical domain of a reduction is that of its operand.
      const ValueId of = demands(op.kind, kReduction) ? op.operands[0] : y;
      std::vector<bool>& list = renamed[g[y].name];
      for (size_t i = 0; i < rank_of(g, of); ++i) list.push_back(removal.gone(of, i));
    }
  }
  if (!change_fusion(to, change)) return false;
  if (to.steps()) rename_domains(steps_of(to), renamed);
  return true;
}

}  // namespace

AxisLinks axis_links(const Graph& g, OpId id, const Bindings& sizes) {
  const Op& op = g[id];
  AxisLinks result;
  const ValueId x = op.operands.empty() ? ValueId() : op.operands[0], y = op.results[0];
  if (family_of(op.kind) == AxisRule::kRegrouped) {
    const auto from = evaluate_shape(g, x, sizes), to = evaluate_shape(g, y, sizes);
    if (from && to) link_reshape(*from, *to, result);
    return result;
  }
  // The result's axes are named by the positions of its root, where reduced ones still are.
  std::vector<size_t> seen;
  size_t next = 0;
  for (DomainId d : root_of(g.tensor_of(y))) seen.push_back(g[d].iter_type == IterType::kReduction ? next : next++);
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const auto relation = axis_relation(g, op, k);
    for (size_t i = 0; i < relation.size(); ++i) {
      const bool is_meant =
          relation[i].relation == AxisRelation::kChosen || relation[i].relation == AxisRelation::kJoined;
      if (is_meant) result.fixed.emplace_back(k, i);
      if (is_meant && relation[i].result != kNoAxis) result.fixed_results.push_back(relation[i].result);
      if (!is_meant && relation[i].is_at_result() && relation[i].relation != AxisRelation::kReduced)
        result.links.push_back({k, i, seen[relation[i].result]});
    }
  }
  // A triangle means its last two axes, and a count its only one.
  if (op.kind == OpKind::kTriu)
    for (size_t i = rank_of(g, x) - 2; i < rank_of(g, x); ++i) result.fixed.emplace_back(0, i);
  if (op.kind == OpKind::kIota) result.fixed_results.push_back(0);
  return result;
}

std::vector<Edit> delete_axes(const Case& c) {
  std::vector<Edit> edits;
  const Graph& g = c.fusion();
  for (const auto& [first, members] : removable_axes(g, sizes_of(g, c.inputs())))
    edits.push_back(
        [name = g[members[0].first].name, axis = members[0].second](Case& to) { return delete_axis(to, name, axis); });
  return edits;
}

}  // namespace fusebox::fuzz
