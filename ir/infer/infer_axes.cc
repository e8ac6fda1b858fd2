// Axes: how consumers see a tensor, and how the axes of operands combine.
#include "ir/infer/infer_rules.h"

namespace fusebox {

void fail(const Graph& g, ErrorCode code, const std::string& message, ValueId place) {
  throw Error(code, message, place && !g[place].name.empty() ? "%" + g[place].name : std::string());
}

std::string op_text(OpKind kind) { return std::string(row_of(kind).text); }

std::vector<Axis> axes_of(InferContext& c, ValueId tensor) {
  if (!c.g.is_tensor(tensor))
    fail(c.g, ErrorCode::kWrongKind, op_text(c.kind) + " needs a tensor here, not a scalar", tensor);
  std::vector<Axis> axes;
  for (DomainId d : logical_without_reductions(c.g, c.g.tensor_of(tensor))) {
    Axis axis;
    const IterDomain domain = c.g[d];
    axis.type = domain.iter_type == IterType::kBroadcast || domain.iter_type == IterType::kSymbolic
                    ? domain.iter_type
                    : IterType::kIteration;
    axis.expanded = domain.expanded;
    axis.extent = axis.is_broadcast() ? constant_index(c.g, 1) : emit_extent(c.g, c.place, d);
    axes.push_back(axis);
  }
  return axes;
}

Axis broadcast_axis(Graph& g, ValueId expanded) {
  Axis axis;
  axis.type = IterType::kBroadcast;
  axis.extent = constant_index(g, 1);
  axis.expanded = expanded;
  return axis;
}

ValueId checked_size(InferContext& c, ValueId size) {
  if (!is_integer(c.g[size].dtype))
    fail(c.g, ErrorCode::kDtypeMismatch, "an extent of " + op_text(c.kind) + " must be an integer; cast it first",
         size);
  if (const auto n = constant_integer(c.g, size); n && *n < 0)
    fail(c.g, ErrorCode::kBadAttribute, "an extent of " + op_text(c.kind) + " is negative; give 0 or more",
         c.operand(0));
  return scalar::cast(c.g, c.place, size, Dtype::kIndex);
}

Axis axis_of_size(Graph& g, ValueId size) {
  if (is_one(g, size)) return broadcast_axis(g);
  Axis axis;
  axis.extent = size;
  return axis;
}

Axis materialised(const Axis& axis) {
  if (!axis.is_broadcast() && axis.type != IterType::kSymbolic) return axis;
  Axis result;
  result.extent = axis.size();
  return result;
}

bool is_one(const Graph& g, ValueId v) { return constant_integer(g, v) == 1; }

bool is_fixed_to_one(const Graph& g, ValueId size) {
  const OpId def = g[size].def;
  return def && g[def].kind == OpKind::kSet && constant_integer(g, g[def].operands[0]) == 1;
}

size_t checked_axis(const InferContext& c, int64_t axis, size_t rank) {
  const int64_t n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    fail(c.g, ErrorCode::kBadAxis,
         op_text(c.kind) + " names axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank) +
             "; name one that it has",
         c.operand(0));
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

std::vector<size_t> checked_axes(const InferContext& c, std::span<const int64_t> axes, size_t rank) {
  std::vector<bool> seen(rank);
  std::vector<size_t> result;
  for (int64_t a : axes) {
    const size_t axis = checked_axis(c, a, rank);
    if (seen[axis])
      fail(c.g, ErrorCode::kBadAxis, op_text(c.kind) + " names axis " + std::to_string(a) + " twice; name it once",
           c.operand(0));
    seen[axis] = true;
    result.push_back(axis);
  }
  return result;
}

Axis combine(const InferContext& c, std::span<const Axis> axes, std::span<const ValueId> places, size_t index) {
  const Axis* chosen = nullptr;
  const auto weight = [](const Axis& a) {
    if (a.type == IterType::kIteration) return 3;
    if (a.type == IterType::kSymbolic) return 2;
    return a.expanded ? 1 : 0;
  };
  std::optional<int64_t> constant;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    if (!chosen || weight(axis) > weight(*chosen)) chosen = &axis;
    if (axis.is_broadcast() && !axis.expanded) continue;
    const auto size = constant_integer(c.g, axis.size());
    if (!size || axis.type == IterType::kSymbolic) continue;
    if (constant && *constant != *size)
      fail(c.g, ErrorCode::kShapeMismatch,
           "operands of " + op_text(c.kind) + " have extents " + std::to_string(*constant) + " and " +
               std::to_string(*size) + " on axis " + std::to_string(index) +
               "; make them equal, or broadcast one of them first",
           places[i]);
    constant = size;
  }
  Axis result;
  result.type = chosen->type;
  result.extent = chosen->extent;
  result.expanded = chosen->expanded;
  return result;
}

ResultSpec tensor_spec(const InferContext&, Dtype dtype, std::vector<Axis> axes) {
  ResultSpec spec;
  spec.kind = ValueKind::kTensor;
  spec.dtype = dtype;
  spec.axes = std::move(axes);
  return spec;
}

}  // namespace fusebox
