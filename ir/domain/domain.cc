#include "ir/domain/domain.h"

#include <algorithm>
#include <array>

namespace fusebox {
namespace {

bool holds(std::span<const DomainId> list, DomainId d) { return std::find(list.begin(), list.end(), d) != list.end(); }

// The domains that a walk has met. A walk meets few domains as a rule, so it begins with a short list: a bit for each
// domain would make it cost as much as the whole graph.
class MetDomains {
 public:
  explicit MetDomains(const Graph& g) : g_(g) {}

  bool contains(DomainId d) const {
    if (!bits_.empty()) return bits_[d.index];
    return std::find(few_.begin(), few_.begin() + count_, d) != few_.begin() + count_;
  }

  void insert(DomainId d) {
    if (bits_.empty() && count_ < static_cast<std::ptrdiff_t>(few_.size())) {
      few_[static_cast<size_t>(count_++)] = d;
      return;
    }
    if (bits_.empty()) {
      bits_.resize(g_.domains.size());
      for (DomainId other : few_) bits_[other.index] = true;
    }
    bits_[d.index] = true;
  }

 private:
  const Graph& g_;
  std::array<DomainId, 32> few_;
  std::ptrdiff_t count_ = 0;
  std::vector<bool> bits_;  // for each domain of the graph; empty while the list is enough
};

void collect_ancestors(const Graph& g, DomainId d, MetDomains& seen, std::vector<DomainId>& order) {
  if (seen.contains(d)) return;
  seen.insert(d);
  if (g[d].def)
    for (DomainId input : g[g[d].def].inputs) collect_ancestors(g, input, seen, order);
  order.push_back(d);
}

void collect_transforms(const Graph& g, DomainId d, std::span<const DomainId> from, MetDomains& seen,
                        std::vector<TransformId>& order) {
  if (!g[d].def || seen.contains(d) || holds(from, d)) return;
  seen.insert(d);
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
  constexpr size_t kUsual = 8;
  MetDomains seen(g);
  std::vector<DomainId> order;
  order.reserve(kUsual);
  for (DomainId d : of) collect_ancestors(g, d, seen, order);
  return order;
}

std::vector<DomainId> descendants(const Graph& g, const Tensor& t, std::span<const DomainId> of) {
  std::vector<DomainId> found(of.begin(), of.end());
  // Transforms are in order of application, so one pass meets inputs before outputs.
  for (TransformId id : t.transforms) {
    const auto& inputs = g[id].inputs;
    if (std::none_of(inputs.begin(), inputs.end(), [&](DomainId d) { return holds(found, d); })) continue;
    for (DomainId output : g[id].outputs)
      if (!holds(found, output)) found.push_back(output);
  }
  return found;
}

std::vector<DomainId> leaves(const Graph& g, DomainId d) {
  if (!g[d].def) return {d};
  std::vector<DomainId> result;
  for (DomainId a : ancestors(g, std::span(&d, 1)))
    if (!g[a].def) result.push_back(a);
  return result;
}

std::vector<TransformId> transforms_between(const Graph& g, std::span<const DomainId> from,
                                            std::span<const DomainId> to) {
  MetDomains seen(g);
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
