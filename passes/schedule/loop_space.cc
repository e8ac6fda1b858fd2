#include "passes/schedule/loop_space.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/domain/joined_axis.h"
#include "ir/module/architecture.h"
#include "passes/schedule/reduction_space.h"
#include "passes/schedule/schedule_memo.h"

namespace fusebox {
namespace {

bool is_broadcast(const Graph& g, DomainId d) { return g[d].iter_type == IterType::kBroadcast; }

std::vector<DomainId> axes_of(const Graph& g, ValueId tensor) {
  return logical_without_reductions(g, g.tensor_of(tensor));
}

// For each axis of the reference: the tensor's axis of the same class, each taken once and those at the same position
// first.
std::vector<std::optional<size_t>> match_axes(const Graph& g, const AxisClasses& classes, ValueId reference,
                                              ValueId tensor) {
  const auto of_reference = axes_of(g, reference), own = axes_of(g, tensor);
  std::vector<std::optional<size_t>> result(of_reference.size());
  std::vector<bool> taken(own.size());
  const auto take = [&](size_t i, size_t k) {
    if (result[i] || taken[k] || is_broadcast(g, own[k]) || !classes.same(of_reference[i], own[k])) return;
    result[i] = k;
    taken[k] = true;
  };
  if (own.size() == of_reference.size())
    for (size_t i = 0; i < own.size(); ++i) take(i, i);
  for (size_t i = 0; i < of_reference.size(); ++i)
    for (size_t k = 0; k < own.size(); ++k) take(i, k);
  return result;
}

// The tensors whose memory the kernel reads or writes.
std::vector<ValueId> in_memory(const Graph& g) {
  std::vector<ValueId> result;
  for (ValueId v : inputs(g))
    if (g.is_tensor(v)) result.push_back(v);
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value)) result.push_back(out.value);
  return result;
}

// Whether the tensor lies in order along two neighbouring axes of the reference, or lacks both.
bool lies_along(const Graph& g, ValueId tensor, std::optional<size_t> outer, std::optional<size_t> inner) {
  if (!outer && !inner) return true;
  if (!outer || !inner) return false;
  const auto axes = axes_of(g, tensor);
  const auto order = allocation_of(g, g.tensor_of(tensor));
  const auto contiguity = contiguity_of(g, g.tensor_of(tensor));
  size_t i = position_in(order, axes[*outer]);
  if (i >= order.size() || contiguity[i] != Contiguity::kTrue) return false;
  for (++i; i < order.size() && is_broadcast(g, order[i]); ++i) {
  }
  return i < order.size() && order[i] == axes[*inner];
}

// The axes along which a slice, a pad or a cat moves elements, as its result has them.
std::vector<DomainId> resized_axes(const Graph& g) {
  std::vector<DomainId> result;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.kind != OpKind::kSlice && op.kind != OpKind::kPad && op.kind != OpKind::kCat) continue;
    const Tensor& t = g.tensor_of(op.results[0]);
    const auto& root = root_of(t);
    for (size_t i = 0; i < root.size(); ++i)
      if (position_in(t.logical, root[i]) == t.logical.size()) result.push_back(t.logical[i]);
    for (size_t k = 0; op.kind == OpKind::kCat && k < op.operands.size(); ++k)
      if (const auto joined = joined_axis(g, id, k)) result.push_back(joined->result);
  }
  return result;
}

}  // namespace

FusionAxes::FusionAxes(const Graph& fusion) : classes(fusion), resized(resized_axes(fusion)) {}

bool FusionAxes::is_resized(DomainId axis) const {
  return std::ranges::any_of(resized, [&](DomainId r) { return classes.same(r, axis); });
}

std::vector<std::string> sizes_of_one(const ScheduleView& view) {
  const Graph& g = view.fusion;
  std::vector<bool> is_extent(g.values.size());
  for (const IterDomain& d : g.domains)
    if (d.extent && d.iter_type == IterType::kIteration) is_extent[d.extent.index] = true;
  std::vector<std::string> result;
  for (const OpId op : g[Graph::body()].ops) {
    if (g[op].kind != OpKind::kSize) continue;
    for (const ValueId v : g[op].results)
      if (is_extent[v.index] && view.sizes.of(v).most == 1) result.push_back(g[v].name);
  }
  return result;
}

std::optional<NamedSizes> sizes_of(const Graph& fusion, std::span<const DomainId> axes) {
  NamedSizes result;
  for (const DomainId d : axes) {
    const ValueId size = fusion[d].size();
    if (!size) return std::nullopt;
    if (const auto constant = constant_integer(fusion, size)) {
      if (__builtin_mul_overflow(result.factor, *constant, &result.factor)) return std::nullopt;
    } else if (fusion[size].dtype == Dtype::kIndex && !fusion[size].name.empty()) {
      result.names.push_back(fusion[size].name);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

bool should_begin_early(const ScheduleView& view, ValueId reference) {
  constexpr int64_t kMostElements = int64_t{1} << 22;
  return reference && has_dependent_launch(view.device.architecture) &&
         most_of(view.sizes, view.fusion.tensor_of(reference).logical) <= kMostElements;
}

namespace {

// The innermost axis of a tensor's memory that is no broadcast, by its position; the rank if there is none.
size_t innermost_in_memory(const Graph& g, ValueId tensor) {
  const auto axes = axes_of(g, tensor), order = axes_in_memory(g, tensor);
  const auto it = std::find_if(order.rbegin(), order.rend(), [&](DomainId d) { return !is_broadcast(g, d); });
  return it == order.rend() ? axes.size() : position_in(axes, *it);
}

// Whether a tensor lies along the same innermost axis as the output.
bool shares_innermost(const ScheduleView& view, ValueId out, ValueId tensor) {
  const Graph& g = view.fusion;
  const size_t inner = innermost_in_memory(g, out);
  const auto along = axes_along(g, *fusion_axes(view), out, tensor);
  return inner < along.size() && along[inner] && *along[inner] == innermost_in_memory(g, tensor);
}

// The bytes of an element of each tensor in memory that lies along the same innermost axis as this output.
int64_t bytes_along(const ScheduleView& view, ValueId out) {
  int64_t bytes = 0;
  for (ValueId v : in_memory(view.fusion))
    if (shares_innermost(view, out, v)) bytes += size_bytes(view.fusion[v].dtype);
  return bytes;
}

}  // namespace

ValueId reference_of(const ScheduleView& view) {
  const Graph& g = view.fusion;
  ValueId best;
  std::pair<size_t, double> most;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    std::pair<size_t, double> size = {0, 1};
    for (DomainId d : axes_of(g, out.value)) {
      if (is_broadcast(g, d)) continue;
      ++size.first;
      size.second *= static_cast<double>(view.sizes.of(d).most);
    }
    if (best && size < most) continue;
    // Of outputs that are as large, the one along which more is loaded and stored; of equals the first.
    if (best && size == most &&
        (shares_innermost(view, best, out.value) || bytes_along(view, out.value) <= bytes_along(view, best)))
      continue;
    best = out.value;
    most = size;
  }
  return best;
}

std::vector<DomainId> axes_in_memory(const Graph& g, ValueId tensor) {
  const auto axes = axes_of(g, tensor);
  const auto order = allocation_of(g, g.tensor_of(tensor));
  const bool is_order = order.size() == axes.size() &&
                        std::ranges::all_of(order, [&](DomainId d) { return position_in(axes, d) < axes.size(); });
  return is_order ? order : axes;
}

DomainId innermost_axis(const Graph& g, ValueId tensor) {
  const auto order = axes_in_memory(g, tensor);
  const auto inner =
      std::find_if(order.rbegin(), order.rend(), [&](DomainId d) { return g[d].iter_type != IterType::kBroadcast; });
  return inner == order.rend() ? DomainId() : *inner;
}

std::vector<std::optional<size_t>> axes_along(const Graph& g, const FusionAxes& all, ValueId reference,
                                              ValueId tensor) {
  return match_axes(g, all.classes, reference, tensor);
}

std::vector<std::vector<DomainId>> runs_of(const Graph& g, const FusionAxes& all, ValueId reference) {
  const auto axes = axes_of(g, reference), order = axes_in_memory(g, reference);
  std::vector<std::pair<ValueId, std::vector<std::optional<size_t>>>> tensors;
  for (ValueId v : in_memory(g)) tensors.emplace_back(v, match_axes(g, all.classes, reference, v));
  std::vector<std::vector<DomainId>> runs;
  const auto lie_along = [&](DomainId outer, DomainId inner) {
    return std::ranges::all_of(tensors, [&](const auto& t) {
      return lies_along(g, t.first, t.second[position_in(axes, outer)], t.second[position_in(axes, inner)]);
    });
  };
  DomainId before;  // the last axis that is no broadcast: a broadcast is part of any run
  for (DomainId d : order) {
    // A chunk must not reach over the end of a part of a resized axis, so such an axis is a run of its own.
    const bool joins = !runs.empty() && (!before || is_broadcast(g, d) ||
                                         (!all.is_resized(before) && !all.is_resized(d) && lie_along(before, d)));
    if (joins)
      runs.back().push_back(d);
    else
      runs.push_back({d});
    if (!is_broadcast(g, d)) before = d;
  }
  return runs;
}

std::optional<std::string> outputs_differ(const Graph& g, const FusionAxes& all, ValueId reference) {
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value) || out.value == reference) continue;
    size_t found = 0, wanted = 0;
    for (const auto& along : match_axes(g, all.classes, reference, out.value)) found += along ? 1 : 0;
    for (DomainId d : axes_of(g, out.value)) wanted += is_broadcast(g, d) ? 0 : 1;
    if (found < wanted)
      return "%" + g[out.value].name + " has an axis that the output %" + g[reference].name + " has not";
  }
  return std::nullopt;
}

namespace {

// Finds the places of all tensors, readers first, and makes the copies.
class OncePlacer {
 public:
  OncePlacer(StepWriter& w, ValueId reference) : writer_(w), reference_(reference) {}

  std::optional<ReadOnce> run() {
    const Graph& g = writer_.graph();
    const AxisClasses classes(g);
    for (const OutputRef& out : outputs(g)) {
      if (!g.is_tensor(out.value)) continue;
      const auto along = match_axes(g, classes, reference_, out.value);
      Place place(axes_of(g, out.value).size(), "-");
      for (size_t i = 0; i < along.size(); ++i)
        if (along[i]) place[*along[i]] = std::to_string(i);
      places_[g[out.value].name] = place;
    }
    std::vector<std::string> names;  // of first results; the ids of ops change when copies are made
    for (OpId op : g[Graph::body()].ops)
      if (g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]))
        names.push_back(g[g[op].results[0]].name);
    for (size_t i = names.size(); i-- > 0;)
      if (!settle(names[i])) return std::nullopt;
    std::ranges::stable_sort(behind_, {}, [&](const Behind& b) { return -position(b.tensor); });
    return ReadOnce{std::move(behind_), std::move(settled_)};
  }

 private:
  using Place = std::vector<std::string>;  // by axis
  struct Want {
    std::string reader;
    Place place;
    bool shifts = false;  // the reader reads it at an offset
  };

  int64_t position(const std::string& tensor) const {
    const Graph& g = writer_.graph();
    const auto& ops = g[Graph::body()].ops;
    return std::find(ops.begin(), ops.end(), g[writer_.tensor(tensor)].def) - ops.begin();
  }

  // Chooses the place of a tensor among those at which it is wanted, and asks for its operands.
  bool settle(const std::string& name) {
    std::vector<Want> wants = std::move(wants_[name]);
    std::map<std::string, int> times;
    for (const Want& w : wants) ++times[w.reader];
    for (const Want& w : wants)
      for (const Want& other : wants)
        if (w.reader == other.reader && w.place != other.place) return false;
    const auto given = places_.find(name);
    if (given == places_.end() && wants.empty()) return false;  // nothing needs it
    // A reader at the loops of the reference itself comes first.
    const auto simple = std::ranges::find_if(wants, [](const Want& w) { return !w.shifts; });
    const Want* main = given != places_.end() || wants.empty() ? nullptr : simple == wants.end() ? &wants[0] : &*simple;
    const Place place = main ? main->place : given->second;
    const bool main_shifts = main && main->shifts;
    std::set<std::string> served;  // an op may read the tensor as several operands
    for (const Want& w : wants) {
      if ((w.place == place && w.shifts == main_shifts) || !served.insert(w.reader).second) continue;
      if (++copies_ > kMostCopies) return false;
      const std::string copy = writer_.recompute(name, w.reader);
      behind_.push_back({copy, w.reader});
      ask(copy, w.place, true);
    }
    if (main_shifts) behind_.push_back({name, main->reader});
    return ask(name, place, main_shifts), true;
  }

  // States where the op that makes the tensor reads its operands.
  void ask(const std::string& name, const Place& place, bool is_behind) {
    settled_[name] = place;
    const Graph& g = writer_.graph();
    const ValueId v = writer_.tensor(name);
    const Op& op = g[g[v].def];
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ValueId from = op.operands[k];
      if (!from || !g.is_tensor(from) || g[g[from].def].kind == OpKind::kInput) continue;
      const auto relation = axis_relation(g, op, k);
      const auto axes = axes_of(g, from);
      Want want{name, Place(axes.size(), "*"), is_behind};
      for (size_t i = 0; i < axes.size() && i < relation.size(); ++i)
        want.place[i] = at(g, name, k, place, relation[i], want.shifts);
      for (size_t i = 0; i < axes.size(); ++i)
        if (is_broadcast(g, axes[i])) want.place[i] = "-";
      wants_[g[from].name].push_back(std::move(want));
    }
  }

  std::string at(const Graph& g, const std::string& name, size_t operand, const Place& place, OperandAxis axis,
                 bool& shifts) const {
    const auto result = [&] { return axis.result < place.size() ? place[axis.result] : std::string("*"); };
    const Tensor& t = g.tensor_of(writer_.tensor(name));
    switch (axis.relation) {
      case AxisRelation::kSame:
      case AxisRelation::kBroadcast:
      case AxisRelation::kWithin:
        return result();
      case AxisRelation::kResized:
      case AxisRelation::kRegrouped: {
        // An axis that the op leaves as it is stands in both domains.
        const auto& root = root_of(t);
        if (axis.result < root.size())
          if (const size_t i = position_in(t.logical, root[axis.result]); i < place.size()) return place[i];
        shifts |= axis.relation == AxisRelation::kResized;
        return name + "." + std::to_string(axis.result);
      }
      case AxisRelation::kJoined:
        shifts = true;
        return name + "." + std::to_string(operand);
      case AxisRelation::kDropped:
        return "-";
      case AxisRelation::kNone:
      case AxisRelation::kReduced:
      case AxisRelation::kChosen:
        return "*";
    }
    return "*";
  }

  static constexpr int kMostCopies = 64;

  StepWriter& writer_;
  ValueId reference_;
  std::map<std::string, Place> places_;   // of outputs
  std::map<std::string, Place> settled_;  // of all tensors
  std::map<std::string, std::vector<Want>> wants_;
  std::vector<Behind> behind_;
  int copies_ = 0;
};

}  // namespace

std::optional<ReadOnce> read_once(StepWriter& w, ValueId reference) { return OncePlacer(w, reference).run(); }

}  // namespace fusebox
