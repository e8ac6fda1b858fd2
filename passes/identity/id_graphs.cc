#include "passes/identity/id_graphs.h"

#include <algorithm>
#include <array>

#include "ir/domain/domain.h"
#include "passes/identity/id_graph_builder.h"

namespace fusebox {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"exact", "almost-exact", "broadcast", "permissive", "loop"};

}  // namespace

std::string_view text(IdGraphKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<IdGraphKind> parse_id_graph_kind(std::string_view text) {
  const auto it = std::find(kKindNames.begin(), kKindNames.end(), text);
  if (it == kKindNames.end()) return std::nullopt;
  return static_cast<IdGraphKind>(it - kKindNames.begin());
}

std::vector<std::vector<DomainId>> IdGraph::classes() const {
  std::vector<std::vector<DomainId>> result;
  std::vector<size_t> class_of(representative.size());
  for (uint32_t i = 0; i < representative.size(); ++i) {
    const DomainId r = representative[i];
    if (!r) continue;
    if (r.index == i) {
      class_of[i] = result.size();
      result.emplace_back();
    }
    result[class_of[r.index]].push_back(DomainId(i));
  }
  return result;
}

IdGraph id_graph(const Graph& g, IdGraphKind kind, const Defects& defects) {
  IdGraphBuilder builder;
  builder.start(g, {}, defects);
  return builder.make(kind);
}

std::vector<DomainId> domains_of(const Graph& g, const Tensor& t) {
  std::vector<DomainId> result = root_of(t);
  result.insert(result.end(), t.loop_broadcasts.begin(), t.loop_broadcasts.end());
  // If there is a root, a logical domain without a definition is a broadcast that a reshape made.
  for (DomainId d : t.logical)
    if (!g[d].def && position_in(result, d) == result.size()) result.push_back(d);
  for (TransformId id : t.transforms) result.insert(result.end(), g[id].outputs.begin(), g[id].outputs.end());
  return result;
}

DomainClasses::DomainClasses(const Graph& g, std::vector<DomainId> values, bool guarded)
    : guarded_(guarded), parent_(g.domains.size()), nests_(guarded ? g.domains.size() : 0) {
  for (uint32_t i = 0; i < parent_.size(); ++i) {
    parent_[i] = DomainId(i);
    if (guarded && values[i]) nests_[i].emplace_back(g.domains[i].tensor, values[i]);
  }
}

DomainId DomainClasses::find(DomainId d) const {
  while (parent_[d.index] != d) d = parent_[d.index] = parent_[parent_[d.index].index];
  return d;
}

bool DomainClasses::may_unite(DomainId a, DomainId b) const {
  a = find(a);
  b = find(b);
  if (a == b || !guarded_) return true;
  const auto *small = &nests_[a.index], *large = &nests_[b.index];
  if (small->size() > large->size()) std::swap(small, large);
  return std::all_of(small->begin(), small->end(), [&](const NestValue& v) {
    const auto it = std::lower_bound(large->begin(), large->end(), NestValue(v.first, DomainId(0u)));
    return it == large->end() || it->first != v.first || it->second == v.second;
  });
}

bool DomainClasses::unite(DomainId a, DomainId b) {
  a = find(a);
  b = find(b);
  if (a == b || !may_unite(a, b)) return false;
  if (b < a) std::swap(a, b);
  parent_[b.index] = a;
  if (!guarded_) return true;
  auto &keep = nests_[a.index], &other = nests_[b.index];
  if (keep.size() < other.size()) keep.swap(other);
  for (const NestValue& v : other) {
    const auto at = std::lower_bound(keep.begin(), keep.end(), v);
    if (at == keep.end() || *at != v) keep.insert(at, v);
  }
  other = {};
  return true;
}

}  // namespace fusebox
