#include "passes/nest/statement.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/table/error.h"
#include "passes/nest/child_order.h"

namespace fusebox {
namespace {

constexpr uint32_t kNone = LoopNode::kNoNode;

// Whether the nest reduces along a loop of such a parallel type.
template <class Is>
bool reduces_along(const Graph& g, const NestPlan& plan, const Nest& nest, const Is& is) {
  const auto& loop = loop_of(g.tensor_of(g[nest.op].results[0]));
  for (size_t i = 0; i < loop.size(); ++i)
    if (is_reduction(g, loop[i]) && is(plan.nodes[nest.path[i]].parallel)) return true;
  return false;
}

class TreeBuilder {
 public:
  TreeBuilder(const Graph& g, const NestPlan& plan) : g_(g), plan_(plan) { tree_.nodes = plan.nodes; }

  LoopTree run(const std::vector<OrderConstraint>& extra) {
    main_of_.assign(g_.ops.size(), kNone);
    for (const Nest& nest : plan_.nests) add(nest);
    tree_.children.resize(tree_.nodes.size());
    for (uint32_t s = 0; s < tree_.statements.size(); ++s) attach(s);
    for (const Nest& nest : plan_.nests)
      for (ValueId v : g_[nest.op].results)
        for (OpId reader : plan_.readers[v.index]) depend(nest.op, reader);
    for (const OrderConstraint& c : extra) depend(c.before, c.after);
    for (const auto& [first, second] : within_) edge(first, second);
    sort(tree_.top, kNone, false);
    return std::move(tree_);
  }

 private:
  void add(const Nest& nest) {
    if (!demands(g_[nest.op].kind, kReduction)) {
      main_of_[nest.op.index] = push(nest.op, StatementKind::kMain, nest.path);
      return;
    }
    const auto& loop = loop_of(g_.tensor_of(g_[nest.op].results[0]));
    const size_t first = first_reduction_loop(g_, plan_, nest);
    const uint32_t init = push(nest.op, StatementKind::kInit, around(nest, loop, first));
    const uint32_t main = push(nest.op, StatementKind::kMain, nest.path);
    const uint32_t final = push(nest.op, StatementKind::kFinal, around(nest, loop, first));
    main_of_[nest.op.index] = main;
    within_.emplace_back(init, main);
    within_.emplace_back(main, final);
    if (reduces_across_blocks(g_, plan_, nest)) {
      std::vector<uint32_t> path = nest.path;
      for (size_t i = 0; i < path.size(); ++i)
        if (i >= first || is_reduction(g_, loop[i])) path[i] = kNone;
      const uint32_t exchange = push(nest.op, StatementKind::kExchange, std::move(path));
      within_.emplace_back(main, exchange);
      within_.emplace_back(exchange, final);
    }
    init_of_[nest.op] = init;
    final_of_[nest.op] = final;
  }

  // The path of init and final: the nest without its reduction loops. Real loops from position `first` on are cloned.
  std::vector<uint32_t> around(const Nest& nest, const std::vector<DomainId>& loop, size_t first) {
    std::vector<uint32_t> path;
    uint32_t parent = kNone;
    for (size_t i = 0; i < loop.size(); ++i) {
      const uint32_t n = nest.path[i];
      if (is_reduction(g_, loop[i])) {
        path.push_back(kNone);
        continue;
      }
      if (i < first || (parent == tree_.nodes[n].parent && !is_real_loop(tree_.nodes[n].parallel))) {
        path.push_back(n);
      } else {
        LoopNode clone = tree_.nodes[n];
        clone.parent = parent;
        // A clone keeps its parallel type and changes its parent.
        tree_.nodes.push_back(clone);
        path.push_back(static_cast<uint32_t>(tree_.nodes.size() - 1));
      }
      parent = path.back();
    }
    return path;
  }

  uint32_t push(OpId op, StatementKind kind, std::vector<uint32_t> path) {
    tree_.statements.push_back({op, kind, std::move(path)});
    return static_cast<uint32_t>(tree_.statements.size() - 1);
  }

  // The innermost node of a statement, or kNone.
  uint32_t innermost(uint32_t s) const {
    const auto& path = tree_.statements[s].path;
    for (size_t i = path.size(); i-- > 0;)
      if (path[i] != kNone) return path[i];
    return kNone;
  }

  void attach(uint32_t s) {
    TreeChild child{false, s};
    uint32_t parent = innermost(s);
    while (true) {
      auto& list = parent == kNone ? tree_.top : tree_.children[parent];
      const bool there = std::any_of(list.begin(), list.end(), [&](const TreeChild& c) {
        return c.is_node == child.is_node && c.index == child.index;
      });
      if (there) return;
      list.push_back(child);
      if (parent == kNone) return;
      child = {true, parent};
      parent = tree_.nodes[parent].parent;
    }
  }

  void depend(OpId before, OpId after) {
    const auto out = final_of_.find(before);
    const uint32_t from = out != final_of_.end() ? out->second : main_of_[before.index];
    edge(from, main_of_[after.index]);
  }

  // The units of a statement from the top down: its nodes, then the statement itself.
  std::vector<TreeChild> chain(uint32_t s) const {
    std::vector<TreeChild> result{{false, s}};
    for (uint32_t n = innermost(s); n != kNone; n = tree_.nodes[n].parent) result.push_back({true, n});
    std::reverse(result.begin(), result.end());
    return result;
  }

  static std::pair<bool, uint32_t> key(const TreeChild& c) { return {c.is_node, c.index}; }

  void edge(uint32_t from, uint32_t to) {
    const auto a = chain(from), b = chain(to);
    size_t i = 0;
    uint32_t at = kNone;
    while (i < a.size() && i < b.size() && key(a[i]) == key(b[i])) at = a[i++].index;
    if (i == a.size() || i == b.size()) return;
    edges_[at].insert({key(a[i]), key(b[i])});
  }

  // Sorts the children of a node, then those of each of them.
  void sort(std::vector<TreeChild>& list, uint32_t node, bool is_before_exchange) {
    std::map<std::pair<bool, uint32_t>, size_t> position;
    for (size_t i = 0; i < list.size(); ++i) position[key(list[i])] = i;
    ChildGraph children;
    for (const TreeChild& c : list) children.kinds.push_back(kind_of(c));
    children.successors.resize(list.size());
    if (const auto found = edges_.find(node); found != edges_.end())
      for (const auto& [from, to] : found->second) children.successors[position.at(from)].push_back(position.at(to));
    const ChildOrder sorted = order_children(children, is_before_exchange);
    if (sorted.order.size() != list.size()) refuse(list, sorted.order);
    std::vector<TreeChild> result;
    for (const size_t i : sorted.order) {
      result.push_back(list[i]);
      if (list[i].is_node) sort(tree_.children[list[i].index], list[i].index, sorted.is_before_exchange[i]);
    }
    list = std::move(result);
  }

  ChildKind kind_of(const TreeChild& c) const {
    if (c.is_node)
      return std::ranges::all_of(tree_.children[c.index],
                                 [&](const TreeChild& inner) { return kind_of(inner) == ChildKind::kLoad; })
                 ? ChildKind::kLoad
                 : ChildKind::kOther;
    const Statement& s = tree_.statements[c.index];
    const Op& op = g_[s.op];
    if (op.kind == OpKind::kSet) return is_load(op) ? ChildKind::kLoad : ChildKind::kOther;
    if (s.kind == StatementKind::kExchange) return ChildKind::kExchange;
    const bool is_exchange = s.kind == StatementKind::kFinal && demands(op.kind, kReduction) &&
                             reduces_along(g_, plan_, plan_.of(s.op), is_thread) &&
                             !reduces_across_blocks(g_, plan_, plan_.of(s.op));
    return is_exchange ? ChildKind::kExchange : ChildKind::kOther;
  }

  // Whether the op copies an input to memory that is not global.
  bool is_load(const Op& op) const {
    const ValueId from = op.operands[0], to = op.results[0];
    return g_.is_tensor(from) && g_[g_[from].def].kind == OpKind::kInput &&
           g_.tensor_of(to).memory != MemoryType::kGlobal &&
           std::ranges::none_of(outputs(g_), [&](const OutputRef& out) { return out.value == to; });
  }

  // `order` has the children that come before a cycle.
  [[noreturn]] void refuse(const std::vector<TreeChild>& list, const std::vector<size_t>& order) const {
    std::string place;
    for (size_t i = 0; i < list.size() && place.empty(); ++i) {
      if (std::ranges::count(order, i) > 0) continue;
      const OpId op = list[i].is_node ? tree_.nodes[list[i].index].op : tree_.statements[list[i].index].op;
      place = "%" + g_[g_[op].results[0]].name;
    }
    throw Error(
        ErrorCode::kIllegalOrder,
        "its loops would have to run both before and after those of another tensor; inline fewer tensors into one loop",
        place);
  }

  const Graph& g_;
  const NestPlan& plan_;
  LoopTree tree_;
  std::vector<uint32_t> main_of_;
  std::map<OpId, uint32_t> init_of_, final_of_;
  std::vector<std::pair<uint32_t, uint32_t>> within_;
  std::map<uint32_t, std::set<std::pair<std::pair<bool, uint32_t>, std::pair<bool, uint32_t>>>> edges_;
};

}  // namespace

bool is_real_loop(ParallelType p) { return !is_thread(p); }

bool is_reduction(const Graph& g, DomainId d) { return g[d].iter_type == IterType::kReduction; }

size_t first_reduction_loop(const Graph& g, const NestPlan& plan, const Nest& nest) {
  const auto& loop = loop_of(g.tensor_of(g[nest.op].results[0]));
  size_t first = 0;
  while (first < loop.size() && !(is_reduction(g, loop[first]) && is_real_loop(plan.nodes[nest.path[first]].parallel)))
    ++first;
  return first;
}

bool reduces_across_blocks(const Graph& g, const NestPlan& plan, const Nest& nest) {
  return demands(g[nest.op].kind, kReduction) &&
         reduces_along(g, plan, nest, [](ParallelType p) { return is_thread(p) && is_grid(p); });
}

LoopTree build_loop_tree(const Graph& g, const NestPlan& plan, const std::vector<OrderConstraint>& extra) {
  return TreeBuilder(g, plan).run(extra);
}

}  // namespace fusebox
