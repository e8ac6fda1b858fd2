#include "passes/nest/child_order.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <set>
#include <utility>

namespace fusebox {
namespace {

// Kahn's algorithm: of the children whose predecessors are done, the one with the least key comes next.
template <class Key>
std::vector<size_t> sorted_by(const ChildGraph& children, const Key& key) {
  const size_t count = children.kinds.size();
  std::vector<int> pending(count, 0);
  for (const auto& list : children.successors)
    for (const size_t next : list) ++pending[next];
  std::set<std::pair<decltype(key(size_t{})), size_t>> ready;
  for (size_t i = 0; i < count; ++i)
    if (pending[i] == 0) ready.emplace(key(i), i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(i);
    for (const size_t next : children.successors[i])
      if (--pending[next] == 0) ready.emplace(key(next), next);
  }
  return order;
}

std::vector<size_t> phases_of(const ChildGraph& children, const std::vector<size_t>& order) {
  const auto is_exchange = [&](size_t i) { return children.kinds[i] == ChildKind::kExchange; };
  std::vector<size_t> depth(order.size(), 0);
  for (const size_t i : order)
    for (const size_t next : children.successors[i])
      depth[next] = std::max(depth[next], depth[i] + (is_exchange(i) ? 1 : 0));
  std::vector<size_t> phases = depth;
  for (const size_t i : order | std::views::reverse) {
    if (is_exchange(i) || children.successors[i].empty()) continue;
    phases[i] = std::numeric_limits<size_t>::max();
    for (const size_t next : children.successors[i]) phases[i] = std::min(phases[i], phases[next]);
  }
  return phases;
}

}  // namespace

ChildOrder order_children(const ChildGraph& children, bool is_before_exchange) {
  const size_t count = children.kinds.size();
  ChildOrder result{sorted_by(children, [](size_t) { return 0; }), std::vector<bool>(count, is_before_exchange)};
  const bool exchanges = std::ranges::count(children.kinds, ChildKind::kExchange) > 0;
  if (result.order.size() != count || !(exchanges || is_before_exchange)) return result;
  const std::vector<size_t> phases = phases_of(children, result.order);
  std::set<size_t> exchanging;
  for (size_t i = 0; i < count; ++i)
    if (children.kinds[i] == ChildKind::kExchange) exchanging.insert(phases[i]);
  for (size_t i = 0; i < count; ++i)
    if (exchanges) result.is_before_exchange[i] = exchanging.contains(phases[i]);
  result.order = sorted_by(children, [&](size_t i) {
    const bool is_early = children.kinds[i] == ChildKind::kLoad && result.is_before_exchange[i];
    return std::pair(phases[i], is_early ? ChildKind::kLoad : std::max(children.kinds[i], ChildKind::kOther));
  });
  return result;
}

}  // namespace fusebox
