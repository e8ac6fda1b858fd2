#include "passes/segment/view.h"

#include <algorithm>
#include <map>

#include "ir/domain/domain.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "passes/segment/crossing_layouts.h"

namespace fusebox {
namespace {

// Follows an op's transforms from the operand's memory.
class Viewer {
 public:
  Viewer(const Graph& g, OpId op, const Defects& defects)
      : g_(g), op_(op), defects_(defects), result_(g.tensor_of(g[op].results[0])) {}

  std::variant<View, std::string> run(const MemoryOrder& operand) {
    if (auto why = begin(operand)) return *why;
    for (TransformId id : op_transforms(g_, result_))
      if (auto why = transform(g_[id])) return *why;
    return finish();
  }

 private:
  struct Place {
    DomainId domain;
    Contiguity contiguity = Contiguity::kTrue;
  };

  static bool has_place(const Place& p) { return p.contiguity != Contiguity::kNone; }

  std::optional<std::string> begin(const MemoryOrder& operand) {
    if (g_[op_].kind != OpKind::kReshape && g_[op_].kind != OpKind::kSlice)
      return "only a reshape or a slice is a view";
    const auto is_open = [&](DomainId d) { return g_[d].iter_type == IterType::kSymbolic; };
    if (std::ranges::any_of(result_.logical, is_open)) return "its axes are not resolved";
    const ValueId from = g_[op_].operands[0];
    const auto axes = logical_without_reductions(g_, g_.tensor_of(from));
    const auto pairs = map_producer_to_consumer(g_, op_, 0);
    for (size_t k = 0; k < operand.order.size(); ++k) {
      const auto axis = static_cast<size_t>(operand.order[k]);
      const IterDomain& d = g_[axes.at(axis)];
      if (d.iter_type == IterType::kSymbolic) return "an axis of its operand is not resolved";
      if (d.expanded) return "an axis of its operand is expanded";
      const auto pair = std::ranges::find(pairs, axes[axis], &DomainPair::producer);
      if (pair == pairs.end()) {
        if (d.iter_type != IterType::kBroadcast && constant_extent(g_, axes[axis]) != 1)
          return "it does not read each axis of its operand";
        if (operand.contiguity[k] == Contiguity::kFalse) open_gap_outside_of_dropped(memory_.size());
        continue;
      }
      memory_.push_back({pair->consumer, operand.contiguity[k]});
      if (has_place(memory_.back())) strides_[pair->consumer] = {axis, {}};
    }
    return std::nullopt;
  }

  // The nearest axis outside of the place `at` steps over more than the axes within it.
  void open_gap_outside_of_dropped(size_t at) {
    if (!defects_.has(Defect::kViewDroppedGap)) open_gap_outside(at);
  }
  void open_gap_outside(size_t at) {
    while (at > 0 && !has_place(memory_[at - 1])) --at;
    if (at > 0) memory_[at - 1].contiguity = Contiguity::kFalse;
  }

  size_t place_of(DomainId d) const {
    const auto at = std::ranges::find(memory_, d, &Place::domain);
    return at != memory_.end() && has_place(*at) ? static_cast<size_t>(at - memory_.begin()) : memory_.size();
  }

  std::optional<std::string> transform(const Transform& t) {
    switch (t.kind) {
      case TransformKind::kSplit:
        return split(t);
      case TransformKind::kMerge:
        return merge(t);
      case TransformKind::kResize:
        return resize(t);
      case TransformKind::kSwizzle:
        break;
    }
    return "its axes are swizzled";
  }

  std::optional<std::string> split(const Transform& t) {
    const size_t at = place_of(t.inputs[0]);
    if (at == memory_.size()) return "it splits an axis of one element";
    const DomainId outer = t.outputs[0], inner = t.outputs[1];
    View::Stride stride = strides_.at(t.inputs[0]);
    strides_[inner] = stride;
    if (!defects_.has(Defect::kViewSplitStride)) stride.times.push_back(inner);
    strides_[outer] = std::move(stride);
    memory_[at].domain = inner;
    memory_.insert(memory_.begin() + static_cast<std::ptrdiff_t>(at), {outer, Contiguity::kTrue});
    return std::nullopt;
  }

  std::optional<std::string> merge(const Transform& t) {
    const size_t outer = place_of(t.inputs[0]), inner = place_of(t.inputs[1]);
    if (outer == memory_.size() || inner == memory_.size()) return "it merges an axis of one element";
    const auto is_between = [&](const Place& p) { return has_place(p); };
    const bool are_neighbours =
        outer < inner && std::none_of(memory_.begin() + static_cast<std::ptrdiff_t>(outer) + 1,
                                      memory_.begin() + static_cast<std::ptrdiff_t>(inner), is_between);
    const bool has_gap = memory_[outer].contiguity != Contiguity::kTrue && !defects_.has(Defect::kViewMergesGaps);
    if (!are_neighbours || has_gap) return "it merges axes that do not lie behind one another without a gap";
    strides_[t.outputs[0]] = strides_.at(t.inputs[1]);
    memory_[inner].domain = t.outputs[0];
    memory_.erase(memory_.begin() + static_cast<std::ptrdiff_t>(outer));
    return std::nullopt;
  }

  std::optional<std::string> resize(const Transform& t) {
    const size_t at = place_of(t.inputs[0]);
    if (at == memory_.size()) return "it resizes an axis of one element";
    const View::Stride stride = strides_.at(t.inputs[0]);
    view_.shifts.push_back({stride, t.factor});
    memory_[at].domain = t.outputs[0];
    if (g_[t.outputs[0]].iter_type == IterType::kBroadcast)
      memory_[at].contiguity = Contiguity::kNone;
    else
      strides_[t.outputs[0]] = stride;
    // The axes outside of it step over the elements that are left out.
    if (!defects_.has(Defect::kViewGapsKept)) open_gap_outside(at);
    return std::nullopt;
  }

  std::variant<View, std::string> finish() {
    const auto axes = logical_without_reductions(g_, result_);
    view_.strides.resize(axes.size());
    std::vector<Contiguity> by_axis(axes.size(), Contiguity::kNone);
    std::vector<int64_t>& order = view_.in_memory.order;
    for (size_t at = memory_.size(); at-- > 0;) {
      const Place& p = memory_[at];
      if (position_in(axes, p.domain) < axes.size()) continue;
      if (has_place(p) && constant_extent(g_, p.domain) != 1) return "it drops an axis";
      if (p.contiguity == Contiguity::kFalse) open_gap_outside_of_dropped(at);
    }
    for (const Place& p : memory_) {
      const size_t axis = position_in(axes, p.domain);
      if (axis == axes.size()) continue;
      order.push_back(static_cast<int64_t>(axis));
      by_axis[axis] = p.contiguity;
      if (has_place(p)) view_.strides[axis] = strides_.at(p.domain);
    }
    // An axis of one element that the op makes stands before the axes that follow it.
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (std::ranges::count(order, static_cast<int64_t>(axis)) > 0) continue;
      if (g_[axes[axis]].iter_type != IterType::kBroadcast) return "it makes an axis";
      const auto behind = std::ranges::find_if(order, [&](int64_t i) { return i > static_cast<int64_t>(axis); });
      order.insert(behind, static_cast<int64_t>(axis));
    }
    for (int64_t axis : order) view_.in_memory.contiguity.push_back(by_axis[static_cast<size_t>(axis)]);
    return std::move(view_);
  }

  const Graph& g_;
  const OpId op_;
  const Defects& defects_;
  const Tensor& result_;
  std::vector<Place> memory_;  // outermost first
  std::map<DomainId, View::Stride> strides_;
  View view_;
};

}  // namespace

MemoryOrder memory_order(const Graph& fusion, ValueId tensor, const Crossing& crossing) {
  const Tensor& t = fusion.tensor_of(tensor);
  const auto axes = logical_without_reductions(fusion, t);
  MemoryOrder in{crossing.allocation_order, crossing.contiguity};
  if (in.order.empty()) {
    in.order = order_of(fusion, t);
    if (in.contiguity.empty()) in.contiguity = contiguity_of(fusion, t);
  }
  // What crosses without a word of gaps has none.
  for (size_t k = in.contiguity.size(); k < in.order.size(); ++k) {
    const DomainId d = axes.at(static_cast<size_t>(in.order[k]));
    in.contiguity.push_back(fusion[d].iter_type == IterType::kBroadcast ? Contiguity::kNone : Contiguity::kTrue);
  }
  if (in.order.size() != axes.size() || in.contiguity.size() != axes.size())
    throw Error(ErrorCode::kIllegalAllocation, "a view's operand lies in memory by its logical axes",
                "%" + fusion[tensor].name);
  return in;
}

std::variant<View, std::string> find_view(const Graph& fusion, OpId op, const MemoryOrder& operand,
                                          const Defects& defects) {
  return Viewer(fusion, op, defects).run(operand);
}

std::variant<View, std::string> find_view(const Graph& fusion, OpId op, const Defects& defects) {
  const auto& operands = fusion[op].operands;
  if (operands.empty() || !operands[0] || !fusion.is_tensor(operands[0])) return "it reads no tensor";
  const Tensor& from = fusion.tensor_of(operands[0]);
  if (order_of(fusion, from).size() != logical_without_reductions(fusion, from).size())
    return "its operand does not lie in memory by its axes";
  return find_view(fusion, op, memory_order(fusion, operands[0], {}), defects);
}

void lay_out(const Graph& fusion, const View& view, Crossing& result) {
  const auto& [order, contiguity] = view.in_memory;
  result.allocation_order = order;
  result.contiguity = contiguity;
  if (std::ranges::count(contiguity, Contiguity::kFalse) == 0) result.contiguity.clear();
  if (result.contiguity.empty() && std::ranges::is_sorted(order) &&
      fusion.tensor_of(*find_value(fusion, result.value)).allocation.empty())
    result.allocation_order.clear();
}

std::vector<int64_t> strides_in_order(const TensorLayout& layout, const MemoryOrder& in) {
  std::vector<int64_t> strides(layout.shape.size(), 0);
  int64_t expected = 1;
  for (size_t k = in.order.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(in.order[k]);
    if (in.contiguity[k] == Contiguity::kNone) continue;
    strides[axis] = in.contiguity[k] == Contiguity::kTrue ? expected : layout.strides[axis];
    expected = strides[axis] * layout.shape[axis];
  }
  return strides;
}

}  // namespace fusebox
