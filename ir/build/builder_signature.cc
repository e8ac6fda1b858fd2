// Builds the signature of a program: sizes, inputs and outputs.
#include <algorithm>

#include "ir/build/builder.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {

ValueId size(Graph& g, std::string_view name) {
  return g[add_op(g, Graph::body(), OpKind::kSize, {}, {}, {std::string(name)})].results[0];
}

std::vector<ValueId> sizes(Graph& g, const std::vector<std::string>& names) {
  return g[add_op(g, Graph::body(), OpKind::kSize, {}, {}, names)].results;
}

namespace {

ValueId append_input(Graph& g, ValueId v) {
  Op op;
  op.kind = OpKind::kInput;
  op.results = {v};
  append(g, Graph::body(), std::move(op));
  return v;
}

void refuse(const std::string& message, std::string_view name) {
  throw Error(ErrorCode::kBadAttribute, message, "%" + std::string(name));
}

ValueId checked_extent(Graph& g, const Scalar& s, std::string_view name) {
  const ValueId v = scalar_of(g, s);
  if (g[v].kind != ValueKind::kScalar || g[v].dtype != Dtype::kIndex)
    throw Error(ErrorCode::kDtypeMismatch, "an extent of an input is a size or another index scalar",
                "%" + std::string(name));
  if (const auto n = constant_integer(g, v); n && *n < 0)
    refuse("an extent of an input is negative; give 0 or more", name);
  return v;
}

}  // namespace

ValueId input(Graph& g, std::string_view name, Dtype dtype, const Shape& shape, const InputOptions& options) {
  const size_t rank = shape.size();
  if (!options.contiguity.empty() && options.contiguity.size() != rank)
    refuse("an input has one contiguity for each axis; give " + std::to_string(rank), name);
  if (!options.expanded.empty() && options.expanded.size() != rank)
    refuse("an input has one expanded extent for each axis, 1 for none; give " + std::to_string(rank), name);
  std::vector<int64_t> order = options.allocation_order;
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (order.size() != rank || order[i] != static_cast<int64_t>(i))
      refuse("an allocation order names each axis once", name);
  std::vector<IterDomain> domains;
  for (size_t i = 0; i < rank; ++i) {
    IterDomain d;
    d.name = "i" + std::to_string(i);
    d.extent = checked_extent(g, shape[i], name);
    if (constant_integer(g, d.extent) == 1) d.iter_type = IterType::kBroadcast;
    if (!options.expanded.empty()) {
      const ValueId expanded = checked_extent(g, options.expanded[i], name);
      if (constant_integer(g, expanded) != 1) {
        if (d.iter_type != IterType::kBroadcast) refuse("only an axis of extent 1 can be expanded", name);
        d.expanded = expanded;
      }
    }
    domains.push_back(std::move(d));
  }
  const ValueId v = add_tensor(g, dtype, name);
  const TensorId t = g[v].tensor;
  for (IterDomain& d : domains) {
    const DomainId id = add_domain(g, t, std::move(d));
    g[t].logical.push_back(id);
  }
  if (!std::is_sorted(options.allocation_order.begin(), options.allocation_order.end()))
    for (int64_t i : options.allocation_order) g[t].allocation.push_back(g[t].logical[static_cast<size_t>(i)]);
  if (!options.contiguity.empty()) {
    // The options name contiguity for each logical axis. The tensor keeps it for each allocation axis, with none at
    // broadcasts.
    std::vector<Contiguity> contiguity;
    for (size_t k = 0; k < rank; ++k) {
      const size_t axis = options.allocation_order.empty() ? k : static_cast<size_t>(options.allocation_order[k]);
      const bool broadcast = g[g[t].logical[axis]].iter_type == IterType::kBroadcast;
      const Contiguity wanted = options.contiguity[axis];
      contiguity.push_back(broadcast ? Contiguity::kNone : wanted == Contiguity::kNone ? Contiguity::kFalse : wanted);
    }
    if (contiguity != contiguity_of(g, g[t])) g[t].contiguity = std::move(contiguity);
  }
  return append_input(g, v);
}

ValueId input_scalar(Graph& g, std::string_view name, Dtype dtype) {
  return append_input(g, add_scalar(g, dtype, name));
}

ValueId input_buffer(Graph& g, std::string_view name, Dtype dtype) {
  const ValueId v = add_tensor(g, dtype, name);
  const TensorId t = g[v].tensor;
  IterDomain d;
  d.name = "i0";
  const DomainId id = add_domain(g, t, std::move(d));
  g[t].logical = {id};
  g[t].memory = MemoryType::kGlobal;
  return append_input(g, v);
}

void output(Graph& g, ValueId value, ValueId alias) { add_op(g, Graph::body(), OpKind::kOutput, {value, alias}); }

ValueId size_of(Graph& g, ValueId x, int64_t axis) {
  const auto domains = logical_without_reductions(g, g.tensor_of(x));
  const int64_t rank = static_cast<int64_t>(domains.size());
  if (axis < -rank || axis >= rank)
    throw Error(ErrorCode::kBadAxis,
                "a tensor of rank " + std::to_string(rank) + " has no axis " + std::to_string(axis), "%" + g[x].name);
  return emit_size(g, Graph::body(), domains[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
}

}  // namespace fusebox
