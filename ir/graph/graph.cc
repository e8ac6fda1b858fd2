#include "ir/graph/graph.h"

#include <algorithm>
#include <unordered_set>

#include "ir/graph/name_index.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// Compares the last character first: most names differ there.
bool has_name(const Value& v, std::string_view name) {
  return v.name.size() == name.size() && v.name.back() == name.back() && v.name == name;
}

std::string numbered(std::string_view base, size_t number) { return std::string(base) + "_" + std::to_string(number); }

OpId insert_near(Graph& g, OpId near, size_t offset, Op op) {
  const OpId id(g.ops.size());
  for (Region& region : g.regions) {
    const auto it = std::find(region.ops.begin(), region.ops.end(), near);
    if (it == region.ops.end()) continue;
    region.ops.insert(it + static_cast<std::ptrdiff_t>(offset), id);
    for (ValueId r : op.results) g[r].def = id;
    g.ops.push_back(std::move(op));
    return id;
  }
  throw Error(ErrorCode::kInternal, "insert next to an op that stands in no region");
}

void collect_ops(const Graph& g, RegionId region, std::vector<OpId>& order) {
  for (OpId op : g[region].ops) {
    order.push_back(op);
    for (RegionId inner : g[op].regions) collect_ops(g, inner, order);
  }
}

}  // namespace

std::string fresh_name(const Graph& g, std::string_view wanted) {
  // Numbers of unnamed values start at the count of values, so that a long program does not try every number.
  const size_t first = wanted.empty() ? g.values.size() : 1;
  const auto candidate = [&](size_t i) { return wanted.empty() ? "v" + std::to_string(i) : numbered(wanted, i); };
  // Almost every name is free. One pass without a table finds this out.
  std::string likely = wanted.empty() ? candidate(first) : std::string(wanted);
  if (std::none_of(g.values.begin(), g.values.end(), [&](const Value& v) { return has_name(v, likely); }))
    return likely;
  std::unordered_set<std::string_view> taken;
  for (const Value& v : g.values) taken.insert(v.name);
  for (size_t i = first;; ++i)
    if (std::string name = candidate(i); !taken.contains(name)) return name;
}

ValueId add_scalar(Graph& g, Dtype dtype, std::string_view name) {
  Value v;
  v.kind = ValueKind::kScalar;
  v.dtype = dtype;
  v.name = fresh_name(g, name);
  g.values.push_back(std::move(v));
  return ValueId(g.values.size() - 1);
}

ValueId with_tensor(Graph& g, ValueId id) {
  g[id].kind = ValueKind::kTensor;
  g[id].tensor = TensorId(g.tensors.size());
  Tensor t;
  t.value = id;
  g.tensors.push_back(std::move(t));
  return id;
}

ValueId add_tensor(Graph& g, Dtype dtype, std::string_view name) { return with_tensor(g, add_scalar(g, dtype, name)); }

ValueId constant(Graph& g, Dtype dtype, ConstantBits bits) {
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    if (v.constant && v.dtype == dtype && *v.constant == bits) return ValueId(i);
  }
  Value v;
  v.dtype = dtype;
  v.constant = bits;
  g.values.push_back(std::move(v));
  return ValueId(g.values.size() - 1);
}

ValueId constant_index(Graph& g, int64_t value) {
  return constant(g, Dtype::kIndex, {static_cast<uint64_t>(value), 0});
}

std::optional<int64_t> constant_integer(const Graph& g, ValueId v) {
  const Value& value = g[v];
  if (!value.constant || !(is_integer(value.dtype) || is_boolean(value.dtype))) return std::nullopt;
  return static_cast<int64_t>(value.constant->low);
}

DomainId add_domain(Graph& g, TensorId tensor, IterDomain domain) {
  domain.tensor = tensor;
  if (domain.name.empty()) {
    const Tensor& t = g[tensor];
    size_t n = t.logical.size();
    // Looks at all domains: a tensor under construction has domains that are not in its lists yet.
    const auto is_taken = [&](const std::string& name) {
      return std::any_of(g.domains.begin(), g.domains.end(),
                         [&](const IterDomain& d) { return d.tensor == tensor && d.name == name; });
    };
    while (is_taken("i" + std::to_string(n))) ++n;
    domain.name = "i" + std::to_string(n);
  }
  g.domains.push_back(std::move(domain));
  return DomainId(g.domains.size() - 1);
}

RegionId add_region(Graph& g) {
  g.regions.emplace_back();
  return RegionId(g.regions.size() - 1);
}

OpId append(Graph& g, RegionId region, Op op) {
  const OpId id(g.ops.size());
  for (ValueId r : op.results) g[r].def = id;
  g.ops.push_back(std::move(op));
  g[region].ops.push_back(id);
  return id;
}

OpId insert_before(Graph& g, OpId before, Op op) { return insert_near(g, before, 0, std::move(op)); }
OpId insert_after(Graph& g, OpId after, Op op) { return insert_near(g, after, 1, std::move(op)); }

std::optional<ValueId> find_value(const Graph& g, std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (size_t i = 0; i < g.values.size(); ++i)
    if (has_name(g.values[i], name)) return ValueId(i);
  return std::nullopt;
}

std::optional<DomainId> find_domain(const Graph& g, TensorId tensor, std::string_view name) {
  // Every named domain is in a list of its tensor or in one of its transforms. Searching all domains of the graph would
  // make the cost of a step list quadratic in its length.
  DomainId found;
  const auto visit = [&](const std::vector<DomainId>& list) {
    for (DomainId d : list)
      if (g[d].tensor == tensor && g[d].name == name && d < found) found = d;
  };
  const Tensor& t = g[tensor];
  for (const auto* list : {&t.root, &t.logical, &t.allocation, &t.loop, &t.loop_broadcasts}) visit(*list);
  for (TransformId id : t.transforms) visit(g[id].inputs), visit(g[id].outputs);
  return found ? std::optional(found) : std::nullopt;
}

std::vector<ValueId> inputs(const Graph& g) {
  std::vector<ValueId> result;
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind == OpKind::kInput) result.push_back(g[op].results[0]);
  return result;
}

std::vector<OutputRef> outputs(const Graph& g) {
  std::vector<OutputRef> result;
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind == OpKind::kOutput)
      result.push_back({g[op].operands[0], g[op].operands.size() > 1 ? g[op].operands[1] : ValueId()});
  return result;
}

bool has_in_body(const Graph& g, OpKind kind) {
  return std::ranges::any_of(g[Graph::body()].ops, [&](OpId op) { return g[op].kind == kind; });
}

std::vector<OpId> ops_in_order(const Graph& g) {
  std::vector<OpId> order;
  order.reserve(g.ops.size());
  collect_ops(g, Graph::body(), order);
  return order;
}

std::vector<std::vector<OpId>> uses(const Graph& g) {
  std::vector<std::vector<OpId>> result(g.values.size());
  for (OpId op : ops_in_order(g))
    for (ValueId v : g[op].operands)
      if (v && (result[v.index].empty() || result[v.index].back() != op)) result[v.index].push_back(op);
  return result;
}

const std::vector<DomainId>& root_of(const Tensor& t) { return t.root.empty() ? t.logical : t.root; }
const std::vector<DomainId>& loop_of(const Tensor& t) { return t.loop.empty() ? t.logical : t.loop; }

std::vector<DomainId> logical_without_reductions(const Graph& g, const Tensor& t) {
  std::vector<DomainId> result;
  result.reserve(t.logical.size());
  for (DomainId d : t.logical)
    if (g[d].iter_type != IterType::kReduction) result.push_back(d);
  return result;
}

std::vector<DomainId> allocation_of(const Graph& g, const Tensor& t) {
  return t.allocation.empty() ? logical_without_reductions(g, t) : t.allocation;
}

std::vector<Contiguity> contiguity_of(const Graph& g, const Tensor& t) {
  if (!t.contiguity.empty()) return t.contiguity;
  std::vector<Contiguity> result;
  for (DomainId d : allocation_of(g, t))
    result.push_back(g[d].iter_type == IterType::kBroadcast ? Contiguity::kNone : Contiguity::kTrue);
  return result;
}

}  // namespace fusebox
