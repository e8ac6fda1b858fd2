#include "passes/segment/crossing_layouts.h"

#include <algorithm>
#include <numeric>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/segment/view.h"

namespace fusebox {
namespace {

// The extents of a tensor's axes, and which are broadcast.
struct Axes {
  std::vector<int64_t> shape;
  std::vector<bool> broadcast;
};

Axes axes_of(const Graph& g, ValueId v, const Bindings& sizes) {
  Axes axes;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(v))) {
    const auto size = evaluate_size(g, d, sizes);
    check_internal(size.has_value(), "an extent is not bound");
    axes.shape.push_back(*size);
    axes.broadcast.push_back(g[d].iter_type == IterType::kBroadcast);
  }
  return axes;
}

bool is_in_order(const std::vector<int64_t>& order) { return std::ranges::is_sorted(order); }

std::vector<int64_t> plain_order(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

// The order in which axes of these strides lie. An axis of one element, or a broadcast, keeps its place.
std::vector<int64_t> order_by_strides(const TensorLayout& layout, const std::vector<bool>& broadcast) {
  std::vector<int64_t> order = plain_order(layout.shape.size()), moved;
  const auto at = [](int64_t axis) { return static_cast<size_t>(axis); };
  const auto stays = [&](int64_t axis) { return broadcast[at(axis)] || layout.shape[at(axis)] <= 1; };
  for (int64_t axis : order)
    if (!stays(axis)) moved.push_back(axis);
  std::ranges::stable_sort(moved, [&](int64_t a, int64_t b) { return layout.strides[at(a)] > layout.strides[at(b)]; });
  size_t next = 0;
  for (int64_t& axis : order)
    if (!stays(axis)) axis = moved[next++];
  return order;
}

// The contiguity of axes in this order. An axis of one element may have any stride, so it counts as contiguous.
std::vector<Contiguity> contiguity_by_strides(const TensorLayout& layout, const std::vector<int64_t>& order,
                                              const std::vector<bool>& broadcast) {
  std::vector<Contiguity> flags(order.size(), Contiguity::kNone);
  const bool is_empty = std::ranges::find(layout.shape, 0) != layout.shape.end();
  int64_t expected = 1;
  for (size_t k = order.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(order[k]);
    if (broadcast[axis]) continue;
    const bool fits = is_empty || layout.shape[axis] <= 1 || layout.strides[axis] == expected;
    flags[k] = fits ? Contiguity::kTrue : Contiguity::kFalse;
    expected = (fits ? expected : layout.strides[axis]) * layout.shape[axis];
  }
  return flags;
}

bool is_contiguous(const std::vector<Contiguity>& flags) {
  return std::ranges::find(flags, Contiguity::kFalse) == flags.end();
}

bool makes(const Graph& segment, const std::string& value, OpKind kind) {
  const auto v = find_value(segment, value);
  return v && segment[segment[*v].def].kind == kind;
}

}  // namespace

std::vector<int64_t> order_of(const Graph& g, const Tensor& t) {
  const auto logical = logical_without_reductions(g, t);
  std::vector<int64_t> order;
  for (DomainId d : allocation_of(g, t))
    if (const size_t axis = position_in(logical, d); axis < logical.size()) order.push_back(static_cast<int64_t>(axis));
  return order;
}

TensorLayout dense_layout(std::vector<int64_t> shape, std::span<const int64_t> order,
                          const std::vector<bool>& broadcast) {
  TensorLayout layout{std::move(shape), {}};
  layout.strides.resize(layout.shape.size(), 0);
  int64_t run = 1;
  for (size_t k = order.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(order[k]);
    if (broadcast[axis]) continue;
    layout.strides[axis] = run;
    run *= layout.shape[axis];
  }
  return layout;
}

bool has_order(const TensorLayout& layout, std::span<const int64_t> order, std::span<const Contiguity> contiguity) {
  if (std::ranges::find(layout.shape, 0) != layout.shape.end()) return true;
  int64_t expected = 1;
  for (size_t k = order.size(); k-- > 0;) {
    const auto axis = static_cast<size_t>(order[k]);
    if (contiguity[k] == Contiguity::kNone) continue;
    if (contiguity[k] == Contiguity::kTrue && layout.shape[axis] > 1 && layout.strides[axis] != expected) return false;
    expected = (contiguity[k] == Contiguity::kTrue ? expected : layout.strides[axis]) * layout.shape[axis];
  }
  return true;
}

TensorLayout declared_layout(const TensorLayout& chosen, std::span<const int64_t> order,
                             std::span<const Contiguity> contiguity, const std::vector<bool>& broadcast) {
  return has_order(chosen, order, contiguity) ? chosen : dense_layout(chosen.shape, order, broadcast);
}

CrossingLayouts::CrossingLayouts(const Graph& fusion, const Segmentation& segmentation, CrossingOptions options)
    : fusion_(fusion), options_(std::move(options)), names_(fusion) {
  for (size_t i = 0; i < segmentation.segments.size(); ++i)
    for (size_t k = 0; k < segmentation.segments[i].inputs.size(); ++k)
      places_[segmentation.segments[i].inputs[k].value].push_back({i, k});
}

void CrossingLayouts::take(Segmentation& s, size_t segment, const Graph& scheduled) {
  if (s.segments[segment].executor == SegmentExecutor::kAten && options_.infer)
    take_aten(s, segment, scheduled);
  else if (s.segments[segment].executor == SegmentExecutor::kView)
    take_view(s, segment);
  else
    take_kernel(s, segment, scheduled);
}

void CrossingLayouts::take_kernel(Segmentation& s, size_t segment, const Graph& scheduled) {
  // By position, because a step may have put another tensor in an output's place.
  const auto made = outputs(scheduled);
  for (size_t k = 0; k < made.size(); ++k) {
    Crossing& out = s.segments[segment].outputs[k];
    const ValueId v = made[k].value;
    if (!scheduled.is_tensor(v)) continue;
    made_[out.value] = out.allocation_order;
    if (options_.infer && !out.alias.empty()) known_[out.value] = layout_of(out.alias);
    // An output that is in order here and in the fusion needs no allocation order.
    const auto in_fusion = names_.find(out.value);
    const bool was_in_order =
        in_fusion && fusion_.tensor_of(*in_fusion).allocation.empty() && out.allocation_order.empty();
    if (scheduled.tensor_of(v).allocation.empty() && was_in_order) continue;
    const std::vector<int64_t> order = order_of(scheduled, scheduled.tensor_of(v));
    if (order.size() != logical_without_reductions(scheduled, scheduled.tensor_of(v)).size())
      throw Error(
          ErrorCode::kIllegalAllocation,
          "what crosses a kernel's border is laid out by its logical axes; set the allocation to an order of them",
          "%" + out.value);
    out.allocation_order = order;
    made_[out.value] = order;
    if (!options_.defects.has(Defect::kCrossingOrderDropped)) pass_on(s, segment, out);
  }
}

void CrossingLayouts::take_view(Segmentation& s, size_t segment) {
  Segment& part = s.segments[segment];
  if (part.outputs.empty()) return;
  const OpId op = fusion_[*names_.find(part.ops.at(0))].def;
  const Crossing& in = part.inputs.at(0);
  const MemoryOrder operand = memory_order(fusion_, fusion_[op].operands[0], in);
  const auto found = find_view(fusion_, op, operand, options_.defects);
  if (const auto* why = std::get_if<std::string>(&found))
    throw Error(ErrorCode::kIllegalAllocation, *why + "; assign the op to a kernel", "%" + part.ops[0]);
  const View& view = std::get<View>(found);
  Crossing& out = part.outputs[0];
  lay_out(fusion_, view, out);
  if (!options_.sizes.empty())
    known_[out.value] = layout_of(view, out.value, strides_in_order(layout_of(in.value), operand));
  pass_on(s, segment, out);
}

TensorLayout CrossingLayouts::layout_of(const View& view, const std::string& value,
                                        std::span<const int64_t> of_operand) {
  TensorLayout layout{axes_of(fusion_, *names_.find(value), options_.sizes).shape, {}};
  for (const auto& stride : view.strides) {
    layout.strides.push_back(stride ? of_operand[stride->axis] : 0);
    for (DomainId d : stride ? stride->times : std::vector<DomainId>())
      layout.strides.back() *= evaluate_extent(fusion_, d, options_.sizes).value_or(1);
  }
  return layout;
}

void CrossingLayouts::pass_on(Segmentation& s, size_t segment, const Crossing& out) {
  const auto it = places_.find(out.value);
  if (it == places_.end()) return;
  for (const Place& place : it->second) {
    if (place.segment <= segment) continue;
    Crossing& in = s.segments[place.segment].inputs[place.input];
    in.allocation_order = out.allocation_order;
    in.contiguity = out.contiguity;
  }
}

// The layout of a tensor that a segment reads: an input's own, what ATen gave, or dense as a kernel made it.
const TensorLayout& CrossingLayouts::layout_of(const std::string& value) {
  if (const auto it = known_.find(value); it != known_.end()) return it->second;
  const ValueId v = *names_.find(value);
  const Axes axes = axes_of(fusion_, v, options_.sizes);
  std::vector<int64_t> order = order_of(fusion_, fusion_.tensor_of(v));
  if (fusion_[fusion_[v].def].kind == OpKind::kInput) {
    const auto all = inputs(fusion_);
    const auto at = static_cast<size_t>(std::ranges::find(all, v) - all.begin());
    if (at < options_.inputs.size() && options_.inputs[at].strides.size() == axes.shape.size())
      return known_[value] = {axes.shape, options_.inputs[at].strides};
  } else if (const auto made = made_.find(value); made != made_.end() && !made->second.empty()) {
    order = made->second;
  }
  return known_[value] = dense_layout(axes.shape, order, axes.broadcast);
}

void CrossingLayouts::take_aten(Segmentation& s, size_t segment, const Graph& scheduled) {
  std::vector<BoundInput> given;
  for (OpId id : scheduled[Graph::body()].ops) {
    const Op& op = scheduled[id];
    if (op.kind != OpKind::kInput && op.kind != OpKind::kSize) continue;
    for (ValueId v : op.results) {
      BoundInput b;
      if (scheduled.is_tensor(v)) {
        const TensorLayout& layout = layout_of(scheduled[v].name);
        b.shape = layout.shape, b.strides = layout.strides;
      } else {
        const auto in_fusion = names_.find(scheduled[v].name);
        b.is_scalar = true;
        check_internal(in_fusion && options_.sizes.size() > in_fusion->index && options_.sizes[in_fusion->index],
                       "a scalar of an ATen segment is not bound");
        b.bits = *options_.sizes[in_fusion->index];
      }
      given.push_back(std::move(b));
    }
  }
  const std::vector<TensorLayout> made = options_.infer(scheduled, given);
  std::vector<Crossing>& outs = s.segments[segment].outputs;
  const auto refuse = [](const std::string& place) {
    throw Error(ErrorCode::kNoLayout, "ATen would give another shape than the program says; run the op in a kernel",
                place);
  };
  if (made.size() != outs.size()) refuse("@" + scheduled.name);
  for (size_t k = 0; k < outs.size(); ++k) {
    Crossing& out = outs[k];
    const ValueId v = *names_.find(out.value);
    if (!fusion_.is_tensor(v)) continue;
    const Axes axes = axes_of(fusion_, v, options_.sizes);
    if (made[k].shape != axes.shape || made[k].strides.size() != axes.shape.size()) refuse("%" + out.value);
    if (!out.alias.empty()) {
      // It is copied to the place of an input, and lies there as the input does.
      known_[out.value] = layout_of(out.alias);
      continue;
    }
    TensorLayout layout = made[k];
    // The strides of a tensor without elements mean nothing, and a record does not keep them.
    if (std::ranges::count(axes.shape, 0) > 0)
      layout = dense_layout(axes.shape, plain_order(axes.shape.size()), axes.broadcast);
    const bool is_declared =
        !fusion_.tensor_of(v).allocation.empty() && !options_.defects.has(Defect::kLayoutOrderIgnored);
    if (is_declared)
      layout = declared_layout(layout, order_of(fusion_, fusion_.tensor_of(v)),
                               contiguity_of(fusion_, fusion_.tensor_of(v)), axes.broadcast);
    if (options_.defects.has(Defect::kLayoutSliceContiguous) && makes(scheduled, out.value, OpKind::kSlice))
      layout = dense_layout(axes.shape, plain_order(axes.shape.size()), axes.broadcast);
    if (options_.defects.has(Defect::kLayoutExpandDense) &&
        (makes(scheduled, out.value, OpKind::kExpand) || makes(scheduled, out.value, OpKind::kBroadcastInDim)))
      layout = dense_layout(axes.shape, plain_order(axes.shape.size()), std::vector<bool>(axes.shape.size()));
    out.allocation_order =
        is_declared ? order_of(fusion_, fusion_.tensor_of(v)) : order_by_strides(layout, axes.broadcast);
    out.contiguity = contiguity_by_strides(layout, out.allocation_order, axes.broadcast);
    if (is_contiguous(out.contiguity)) out.contiguity.clear();
    if (out.contiguity.empty() && is_in_order(out.allocation_order) && fusion_.tensor_of(v).allocation.empty())
      out.allocation_order.clear();
    known_[out.value] = std::move(layout);
    pass_on(s, segment, out);
  }
}

}  // namespace fusebox
