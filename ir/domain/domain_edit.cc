#include "ir/domain/domain_edit.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/scalar/scalar.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

bool holds(std::span<const DomainId> list, DomainId d) { return position_in(list, d) < list.size(); }

// The number of leading loops that the tensor shares with its consumers.
size_t inlined_loops(const Graph& g, const Tensor& t) {
  (void)g;
  if (!t.inline_at) return 0;
  const auto& loop = loop_of(t);
  const size_t at = position_in(loop, t.inline_at);
  return at < loop.size() ? at + 1 : 0;
}

// Whether two axes have one extent: the same scalar, or equal constants.
bool have_same_extent(const Graph& g, DomainId a, DomainId b) {
  if (g[a].extent == g[b].extent) return true;
  const auto extent = evaluate_extent(g, a);
  return extent && extent == evaluate_extent(g, b);
}

}  // namespace

std::vector<TensorId> siblings(const Graph& g, TensorId t) {
  const OpId def = g[g[t].value].def;
  if (!def) return {t};
  const bool is_library = demands(g[def].kind, kLibrary);
  const auto have_same_axes = [&](TensorId a, TensorId b) {
    const auto &of_a = g[a].logical, &of_b = g[b].logical;
    if (of_a.size() != of_b.size()) return false;
    for (size_t i = 0; is_library && i < of_a.size(); ++i)
      if (!have_same_extent(g, of_a[i], of_b[i])) return false;
    return true;
  };
  std::vector<TensorId> result;
  for (ValueId v : g[def].results)
    if (g.is_tensor(v) && have_same_axes(g[v].tensor, t)) result.push_back(g[v].tensor);
  return result;
}

namespace {

// What the op's own transforms make of `to` where they make `d` of `from`, or none.
DomainId same_of_op(const Graph& g, const Tensor& from, const Tensor& to, DomainId d) {
  if (!g[d].def) return {};
  const auto of_from = op_transforms(g, from), of_to = op_transforms(g, to);
  const auto at = static_cast<size_t>(std::find(of_from.begin(), of_from.end(), g[d].def) - of_from.begin());
  if (at >= of_from.size() || at >= of_to.size()) return {};
  const auto &own = g[of_from[at]].outputs, &theirs = g[of_to[at]].outputs;
  const size_t i = position_in(own, d);
  return i < theirs.size() ? theirs[i] : DomainId();
}

}  // namespace

DomainId in_sibling(const Graph& g, TensorId sibling, DomainId d) {
  if (g[d].tensor == sibling) return d;
  const Tensor &from = g[g[d].tensor], &to = g[sibling];
  const std::pair<const std::vector<DomainId>*, const std::vector<DomainId>*> lists[] = {
      {&from.logical, &to.logical}, {&root_of(from), &root_of(to)}, {&loop_of(from), &loop_of(to)}};
  // Siblings may have got their loop broadcasts in another order: those for the same domain belong together.
  if (g[d].stands_for) {
    const auto stands_for = [&](DomainId other) { return g[other].stands_for == g[d].stands_for; };
    const auto own = std::find(from.loop_broadcasts.begin(), from.loop_broadcasts.end(), d);
    auto before = own == from.loop_broadcasts.end() ? 0 : std::count_if(from.loop_broadcasts.begin(), own, stands_for);
    for (DomainId other : to.loop_broadcasts)
      if (stands_for(other) && before-- == 0) return other;
  }
  for (const auto& [own, theirs] : lists) {
    if (own == &loop_of(from))
      if (const DomainId made = same_of_op(g, from, to, d)) return made;
    if (const size_t i = position_in(*own, d); i < own->size() && i < theirs->size()) return (*theirs)[i];
  }
  return {};
}

size_t fixed_loops(const Graph& g, TensorId t) {
  size_t fixed = 0;
  for (TensorId s : siblings(g, t)) fixed = std::max(fixed, inlined_loops(g, g[s]));
  if (const OpId def = g[g[t].value].def)
    for (ValueId v : g[def].operands)
      if (v && g.is_tensor(v)) fixed = std::max(fixed, inlined_loops(g, g.tensor_of(v)));
  return std::min(fixed, loop_of(g[t]).size());
}

namespace {

// Visits every named domain of the tensor: each is in one of its lists or transforms. Visiting all domains of the graph
// at each step would make the cost quadratic in the size of the graph.
template <class Visit>
void each_domain(const Graph& g, TensorId t, Visit&& visit) {
  const Tensor& tensor = g[t];
  for (const auto* list : {&tensor.root, &tensor.logical, &tensor.allocation, &tensor.loop, &tensor.loop_broadcasts})
    for (DomainId d : *list) visit(d);
  for (TransformId id : tensor.transforms)
    for (const auto* list : {&g[id].inputs, &g[id].outputs})
      for (DomainId d : *list) visit(d);
}

// `also` is one more taken name.
std::string free_name(const Graph& g, TensorId t, std::string_view wanted, std::string_view also) {
  std::string name(wanted);
  const auto is_taken = [&] {
    bool taken = name == also;
    each_domain(g, t, [&](DomainId d) { taken |= g[d].name == name; });
    return taken;
  };
  for (int i = 1; is_taken(); ++i) name = std::string(wanted) + "_" + std::to_string(i);
  return name;
}

}  // namespace

std::string free_domain_name(const Graph& g, TensorId t, std::string_view wanted) {
  return free_name(g, t, wanted, {});
}

std::optional<IterType> merged_type(IterType outer, IterType inner) {
  const auto can_merge = [](IterType t) {
    return t == IterType::kIteration || t == IterType::kReduction || t == IterType::kBroadcast;
  };
  if (!can_merge(outer) || !can_merge(inner)) return std::nullopt;
  if (outer == inner || inner == IterType::kBroadcast) return outer;
  if (outer == IterType::kBroadcast) return inner;
  return std::nullopt;
}

bool can_transform(const Graph& g, const Transform& transform) {
  const IterType first = g[transform.inputs[0]].iter_type;
  switch (transform.kind) {
    case TransformKind::kSplit:
      return merged_type(first, first).has_value();
    case TransformKind::kMerge:
      return merged_type(first, g[transform.inputs[1]].iter_type).has_value();
    case TransformKind::kSwizzle:
      return first == IterType::kIteration && g[transform.inputs[1]].iter_type == IterType::kIteration;
    case TransformKind::kResize:
      return first == IterType::kIteration || first == IterType::kReduction;
  }
  return false;
}

IterType made_type(const Graph& g, const Transform& transform) {
  const IterType first = g[transform.inputs[0]].iter_type;
  if (transform.kind != TransformKind::kMerge) return first;
  return merged_type(first, g[transform.inputs[1]].iter_type).value_or(IterType::kIteration);
}

TransformId add_transform(Graph& g, TensorId t, Transform transform, std::span<const std::string> names) {
  const TransformId id(g.transforms.size());
  const IterType type = made_type(g, transform);
  const size_t count = transform.kind == TransformKind::kSplit || transform.kind == TransformKind::kSwizzle ? 2 : 1;
  for (size_t i = 0; i < count; ++i) {
    IterDomain d;
    // The tensor does not list the first output yet, so its name is given here.
    d.name = free_name(g, t, names[i], i == 0 ? std::string_view() : std::string_view(g[transform.outputs[0]].name));
    d.iter_type = type;
    d.def = id;
    transform.outputs.push_back(add_domain(g, t, std::move(d)));
  }
  g.transforms.push_back(std::move(transform));
  g[t].transforms.push_back(id);
  return id;
}

DomainId add_loop_broadcast(Graph& g, TensorId t, DomainId like, std::string_view name) {
  IterDomain d;
  d.name = free_domain_name(g, t, name);
  d.iter_type = IterType::kBroadcast;
  d.extent = constant_index(g, 1);
  // A stand-in for a stand-in stands for the original.
  d.stands_for = g[like].stands_for ? g[like].stands_for : like;
  const DomainId id = add_domain(g, t, std::move(d));
  g[t].loop_broadcasts.push_back(id);
  return id;
}

void set_loop(Graph& g, TensorId t, std::vector<DomainId> loop) {
  Tensor& tensor = g[t];
  tensor.loop = std::move(loop);
  if (tensor.loop == tensor.logical) tensor.loop.clear();
}

std::vector<DomainId> loop_base(const Graph& g, TensorId t) {
  const Tensor& tensor = g[t];
  const auto of_op = op_transforms(g, tensor);
  std::vector<DomainId> base = loop_of(tensor);
  const auto made_by = transforms_between(g, {}, base);
  for (size_t i = made_by.size(); i-- > 0;) {
    if (std::find(of_op.begin(), of_op.end(), made_by[i]) != of_op.end()) continue;
    const Transform& tr = g[made_by[i]];
    if (!std::all_of(tr.outputs.begin(), tr.outputs.end(), [&](DomainId d) { return holds(base, d); })) continue;
    std::erase_if(base, [&](DomainId d) { return holds(tr.outputs, d); });
    base.insert(base.end(), tr.inputs.begin(), tr.inputs.end());
  }
  std::erase_if(base, [&](DomainId d) { return g[d].stands_for; });
  for (const auto* list : {&tensor.logical, &root_of(tensor)})
    if (list->size() == base.size() &&
        std::all_of(base.begin(), base.end(), [&](DomainId d) { return holds(*list, d); }))
      return *list;
  return base;
}

void move_stand_ins(Graph& g, const DomainMap& copied) {
  for (const Tensor& tensor : g.tensors)
    for (DomainId id : tensor.loop_broadcasts) {
      IterDomain& d = g[id];
      const auto it = d.stands_for ? copied.find(d.stands_for) : copied.end();
      if (it == copied.end()) continue;
      const Tensor& t = g[g[d.stands_for].tensor];
      if (!holds(root_of(t), d.stands_for) && !holds(t.logical, d.stands_for)) d.stands_for = it->second;
    }
}

std::vector<DomainId> domains_of(const Graph& g, TensorId t) {
  std::vector<DomainId> result;
  each_domain(g, t, [&](DomainId d) { result.push_back(d); });
  return result;
}

void prune(Graph& g, TensorId t, std::span<const DomainId> had) {
  Tensor& tensor = g[t];
  std::vector<DomainId> needed = root_of(tensor);
  for (const auto* list : {&tensor.logical, &tensor.loop, &tensor.allocation})
    needed.insert(needed.end(), list->begin(), list->end());
  if (tensor.inline_at) needed.push_back(tensor.inline_at);

  const auto kept = transforms_between(g, {}, needed);
  std::vector<DomainId> alive = ancestors(g, needed);
  for (TransformId id : kept) alive.insert(alive.end(), g[id].outputs.begin(), g[id].outputs.end());
  std::sort(alive.begin(), alive.end());
  const auto is_alive = [&](DomainId d) { return std::binary_search(alive.begin(), alive.end(), d); };
  std::erase_if(tensor.transforms, [&](TransformId id) {
    if (std::find(kept.begin(), kept.end(), id) != kept.end()) return false;
    g[id] = Transform{};
    return true;
  });
  std::erase_if(tensor.loop_broadcasts, [&](DomainId d) { return !is_alive(d); });
  for (DomainId d : had)
    if (!is_alive(d)) {
      g[d] = IterDomain{};
      g[d].tensor = t;  // every domain belongs to a tensor; nothing finds a domain without a name
    }
}

ValueId copy_tensor(Graph& g, ValueId value, std::string_view name, DomainMap* copied) {
  const Tensor from = g.tensor_of(value);
  const ValueId result = add_tensor(g, g[value].dtype, name);
  const TensorId id = g[result].tensor;
  DomainMap local;
  DomainMap& map = copied ? *copied : local;
  const auto copy_domain = [&](DomainId d) {
    if (!d || map.contains(d)) return;
    IterDomain copy = g[d];
    copy.tensor = id;
    copy.def = TransformId();
    map.emplace(d, DomainId(g.domains.size()));
    g.domains.push_back(std::move(copy));
  };
  Tensor to = from;
  to.value = result;
  to.transforms.clear();
  const auto lists = {&Tensor::root, &Tensor::logical, &Tensor::loop_broadcasts, &Tensor::allocation, &Tensor::loop};
  for (auto list : lists)
    for (DomainId d : from.*list) copy_domain(d);
  for (TransformId old : from.transforms) {
    Transform copy = g[old];
    for (auto* list : {&copy.inputs, &copy.outputs})
      for (DomainId& d : *list) {
        copy_domain(d);
        d = map.at(d);
      }
    const TransformId made(g.transforms.size());
    for (size_t i = 0; i < copy.outputs.size(); ++i)
      if (g[g[old].outputs[i]].def == old) g[copy.outputs[i]].def = made;
    g.transforms.push_back(std::move(copy));
    to.transforms.push_back(made);
  }
  for (auto list : lists)
    for (DomainId& d : to.*list) d = map.at(d);
  if (to.inline_at) to.inline_at = map.at(to.inline_at);
  g[id] = std::move(to);
  return result;
}

}  // namespace fusebox
