#include "ir/domain/domain.h"

#include <algorithm>

namespace fusebox {
namespace {

bool holds(std::span<const DomainId> list, DomainId d) { return std::find(list.begin(), list.end(), d) != list.end(); }

void collect_ancestors(const Graph& g, DomainId d, std::vector<bool>& seen, std::vector<DomainId>& order) {
  if (seen[d.index]) return;
  seen[d.index] = true;
  if (g[d].def)
    for (DomainId input : g[g[d].def].inputs) collect_ancestors(g, input, seen, order);
  order.push_back(d);
}

void collect_transforms(const Graph& g, DomainId d, std::span<const DomainId> from, std::vector<bool>& seen,
                        std::vector<TransformId>& order) {
  if (seen[d.index] || holds(from, d) || !g[d].def) return;
  seen[d.index] = true;
  const TransformId t = g[d].def;
  for (DomainId input : g[t].inputs) collect_transforms(g, input, from, seen, order);
  if (std::find(order.begin(), order.end(), t) == order.end()) order.push_back(t);
}

}  // namespace

bool follows_from(const Graph& g, DomainId d, DomainId a) {
  if (a == d) return true;
  return g[d].def && holds(ancestors(g, std::span(&d, 1)), a);
}

std::vector<DomainId> ancestors(const Graph& g, std::span<const DomainId> of) {
  std::vector<bool> seen(g.domains.size());
  std::vector<DomainId> order;
  for (DomainId d : of) collect_ancestors(g, d, seen, order);
  return order;
}

std::vector<DomainId> descendants(const Graph& g, const Tensor& t, std::span<const DomainId> of) {
  std::vector<DomainId> found(of.begin(), of.end());
  // Transforms are listed in the order of application, so that one pass meets inputs before outputs.
  for (TransformId id : t.transforms) {
    const auto& inputs = g[id].inputs;
    if (std::none_of(inputs.begin(), inputs.end(), [&](DomainId d) { return holds(found, d); })) continue;
    for (DomainId output : g[id].outputs)
      if (!holds(found, output)) found.push_back(output);
  }
  return found;
}

std::vector<DomainId> leaves(const Graph& g, DomainId d) {
  std::vector<DomainId> result;
  for (DomainId a : ancestors(g, std::span(&d, 1)))
    if (!g[a].def) result.push_back(a);
  return result;
}

std::vector<TransformId> transforms_between(const Graph& g, std::span<const DomainId> from,
                                            std::span<const DomainId> to) {
  std::vector<bool> seen(g.domains.size());
  std::vector<TransformId> order;
  for (DomainId d : to) collect_transforms(g, d, from, seen, order);
  return order;
}

std::vector<TransformId> op_transforms(const Graph& g, const Tensor& t) {
  if (t.root.empty()) return {};
  return transforms_between(g, t.root, t.logical);
}

bool is_complete(const Graph& g, std::span<const DomainId> from, std::span<const DomainId> to) {
  std::vector<DomainId> here(from.begin(), from.end());
  for (TransformId id : transforms_between(g, from, to)) {
    for (DomainId input : g[id].inputs) {
      const auto it = std::find(here.begin(), here.end(), input);
      if (it == here.end()) return false;
      here.erase(it);
    }
    here.insert(here.end(), g[id].outputs.begin(), g[id].outputs.end());
  }
  if (here.size() != to.size()) return false;
  std::vector<DomainId> wanted(to.begin(), to.end());
  std::sort(here.begin(), here.end());
  std::sort(wanted.begin(), wanted.end());
  return here == wanted;
}

bool is_same_transform(const Transform& a, const Transform& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case TransformKind::kSplit:
      return a.factor == b.factor && a.inner_split == b.inner_split;
    case TransformKind::kMerge:
      return true;
    case TransformKind::kSwizzle:
      return a.swizzle == b.swizzle;
    case TransformKind::kResize:
      return a.factor == b.factor && a.right == b.right;
  }
  return false;
}

size_t position_in(std::span<const DomainId> list, DomainId d) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), d) - list.begin());
}

}  // namespace fusebox
