// `compact`: renumbers a graph in text order. In text order come the ops of the body, depth first; for each op its new
// operands (constants), its results, each with its domains, and its regions, each with its index before its ops.
#include "ir/graph/compact.h"

#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fusebox {
namespace {

// Compactor<const Graph> copies the parts; Compactor<Graph> moves them. Either visits each part once.
template <class G>
class Compactor {
 public:
  explicit Compactor(G& g)
      : g_(g),
        values_(g.values.size()),
        tensors_(g.tensors.size()),
        domains_(g.domains.size()),
        transforms_(g.transforms.size()) {}

  Graph run() {
    out_.name = g_.name;
    out_.level = g_.level;
    out_.index_bits = g_.index_bits;
    out_.regions.clear();
    out_.values.reserve(g_.values.size());
    out_.tensors.reserve(g_.tensors.size());
    out_.domains.reserve(g_.domains.size());
    out_.transforms.reserve(g_.transforms.size());
    out_.ops.reserve(g_.ops.size());
    region(Graph::body());
    // A reference may have met a value before its definition (an expanded extent, for example). The value got its
    // number then; by now its definition has been visited too.
    return std::move(out_);
  }

 private:
  // The number of an entity in the new graph. A new one has a place there, and is still empty.
  template <class Id, class T>
  static std::pair<Id, bool> renumbered(Id old, std::vector<Id>& numbers, std::vector<T>& entities) {
    Id& number = numbers[old.index];
    if (number) return {number, false};
    number = Id(entities.size());
    entities.emplace_back();
    return {number, true};
  }

  ValueId value(ValueId old) {
    if (!old) return old;
    ValueId& mapped = values_[old.index];
    if (mapped) return mapped;
    if (const auto& bits = g_[old].constant) {
      // Equal constants become one value, because the text form does not tell them apart.
      const auto [it, is_new] =
          constants_.try_emplace({g_[old].dtype, bits->low, bits->high}, ValueId(out_.values.size()));
      if (!is_new) return mapped = it->second;
    }
    mapped = ValueId(out_.values.size());
    const ValueId result = mapped;
    const TensorId its_tensor = g_[old].tensor;
    out_.values.push_back(take(g_[old]));
    out_[result].def = OpId();
    out_[result].index_of = RegionId();
    if (its_tensor) {
      const TensorId t = tensor(its_tensor);
      out_[result].tensor = t;
    }
    return result;
  }

  TensorId tensor(TensorId old) {
    const auto [result, is_new] = renumbered(old, tensors_, out_.tensors);
    if (!is_new) return result;
    Tensor to = take(g_[old]);
    to.value = value(to.value);
    // The transforms come first. They are in order of application, so following a definition never recurses deep.
    for (TransformId& t : to.transforms) t = transform(t);
    for (auto list : {&Tensor::root, &Tensor::logical, &Tensor::loop_broadcasts})
      for (DomainId& d : to.*list) d = domain(d);
    for (auto list : {&Tensor::allocation, &Tensor::loop})
      for (DomainId& d : to.*list) d = domain(d);
    to.inline_at = domain(to.inline_at);
    if (to.root == to.logical) to.root.clear();
    if (to.loop == to.logical) to.loop.clear();
    out_[result] = std::move(to);
    return result;
  }

  DomainId domain(DomainId old) {
    if (!old) return old;
    const auto [result, is_new] = renumbered(old, domains_, out_.domains);
    if (!is_new) return result;
    IterDomain to = take(g_[old]);
    to.tensor = to.tensor ? tensor(to.tensor) : to.tensor;
    to.extent = value(to.extent);
    to.expanded = value(to.expanded);
    to.def = to.def ? transform(to.def) : to.def;
    to.stands_for = domain(to.stands_for);
    out_[result] = std::move(to);
    return result;
  }

  TransformId transform(TransformId old) {
    const auto [result, is_new] = renumbered(old, transforms_, out_.transforms);
    if (!is_new) return result;
    Transform to = take(g_[old]);
    for (DomainId& d : to.inputs) d = domain(d);
    to.factor = value(to.factor);
    to.right = value(to.right);
    for (DomainId& d : to.outputs) d = domain(d);
    out_[result] = std::move(to);
    return result;
  }

  RegionId region(RegionId old) {
    const RegionId result(out_.regions.size());
    out_.regions.emplace_back();
    if (g_[old].index) {
      const ValueId index = value(g_[old].index);
      out_[result].index = index;
      out_[index].index_of = result;
    }
    for (OpId op : g_[old].ops) {
      const OpId id(out_.ops.size());
      out_.ops.emplace_back();
      out_[result].ops.push_back(id);
      Op to = take(g_[op]);
      for (ValueId& v : to.operands) v = value(v);
      for (ValueId& v : to.results) {
        v = value(v);
        out_[v].def = id;
      }
      for (RegionId& r : to.regions) r = region(r);
      out_[id] = std::move(to);
    }
    return result;
  }

  template <class T>
  static decltype(auto) take(T& part) {
    if constexpr (std::is_const_v<T>)
      return part;
    else
      return std::move(part);
  }

  G& g_;
  Graph out_;
  std::vector<ValueId> values_;
  std::vector<TensorId> tensors_;
  std::vector<DomainId> domains_;
  std::vector<TransformId> transforms_;
  std::map<std::tuple<Dtype, uint64_t, uint64_t>, ValueId> constants_;
};

}  // namespace

Graph compact(const Graph& g) { return Compactor<const Graph>(g).run(); }
Graph compacted(Graph&& g) { return Compactor<Graph>(g).run(); }

bool same_members(const Graph& a, const Graph& b) {
  return a.name == b.name && a.level == b.level && a.index_bits == b.index_bits && a.values == b.values &&
         a.tensors == b.tensors && a.domains == b.domains && a.transforms == b.transforms && a.ops == b.ops &&
         a.regions == b.regions;
}

bool operator==(const Graph& a, const Graph& b) { return same_members(a, b) || same_members(compact(a), compact(b)); }

}  // namespace fusebox
