// Checks everything that emission relies on in a plan.
#include <algorithm>
#include <set>

#include "passes/plan/plan_stages.h"
#include "passes/plan/warp_rows.h"

namespace fusebox {
namespace {

constexpr uint32_t kNone = LoopNode::kNoNode;

class PlanChecker {
 public:
  explicit PlanChecker(const KernelPlan& plan) : plan_(plan), g_(*plan.graph) {}

  std::optional<std::string> run() {
    loops(plan_.tree.top, kNone);
    if (fault_) return fault_;
    for (uint32_t i = 0; i < plan_.tree.statements.size(); ++i) statement(i);
    for (const Nest& nest : plan_.nest_plan.nests) nest_statements(nest.op);
    buffers();
    for (const SyncPoint& p : plan_.sync_points) {
      const bool is_there = p.node == kNone || nodes_.contains(p.node);
      if (!is_there || p.before > children(p.node).size()) fail("a barrier stands where nothing does");
    }
    for (const auto& [op, c] : plan_.cascades) cascade(op, c);
    for (const auto& [op, e] : plan_.exchanges) exchange(op, e);
    for (const auto& [node, strip] : plan_.strips)
      if (!nodes_.contains(node) || strip < 1) fail("loop " + std::to_string(node) + " has no strips");
    if (fault_ || plan_.statements.empty()) return fault_;
    accesses();
    return fault_;
  }

 private:
  void fail(const std::string& what) {
    if (!fault_) fault_ = what;
  }
  std::string name(OpId op) const { return plan_.place_of(g_[op].results[0]); }
  const std::vector<TreeChild>& children(uint32_t node) const {
    return node == kNone ? plan_.tree.top : plan_.tree.children[node];
  }

  void loops(const std::vector<TreeChild>& list, uint32_t parent) {
    for (const TreeChild& c : list) {
      if (!c.is_node) {
        if (c.index >= plan_.tree.statements.size() || !statements_.emplace(c.index, parent).second)
          return fail("statement " + std::to_string(c.index) + " stands twice, or nowhere");
        continue;
      }
      if (c.index >= plan_.tree.nodes.size() || c.index >= plan_.tree.children.size() ||
          !nodes_.emplace(c.index, parent).second)
        return fail("loop " + std::to_string(c.index) + " stands twice");
      const LoopNode& node = plan_.tree.nodes[c.index];
      if (node.parent != parent) fail("loop " + std::to_string(c.index) + " stands in another loop than it says");
      if (is_thread(node.parallel) &&
          !(plan_.used_threads.contains(node.parallel) && plan_.exact_launch.contains(node.parallel) &&
            plan_.largest_launch.contains(node.parallel)))
        fail("the plan has no threads along " + std::string(fusebox::text(node.parallel)));
      loops(plan_.tree.children[c.index], c.index);
    }
  }

  bool stands_in(uint32_t inner, uint32_t outer) const {
    while (inner != outer && inner != kNone) inner = nodes_.at(inner);
    return inner == outer;
  }

  void statement(uint32_t index) {
    const Statement& s = plan_.tree.statements[index];
    const auto it = statements_.find(index);
    if (it == statements_.end()) return fail("statement " + std::to_string(index) + " stands in no loop");
    if (s.path.size() != plan_.loops_of(s.op).size()) return fail("a statement of " + name(s.op) + " lacks a loop");
    for (uint32_t n : s.path)
      if (n != kNone && !(nodes_.contains(n) && stands_in(it->second, n)))
        fail("a statement of " + name(s.op) + " stands outside loop " + std::to_string(n));
  }

  void nest_statements(OpId op) {
    std::vector<StatementKind> kinds;
    for (const Statement& s : plan_.tree.statements)
      if (s.op == op) kinds.push_back(s.kind);
    std::sort(kinds.begin(), kinds.end());
    const bool is_reduced = demands(g_[op].kind, kReduction);
    std::vector<StatementKind> wanted{StatementKind::kMain};
    if (is_reduced) wanted = {StatementKind::kInit, StatementKind::kMain, StatementKind::kFinal};
    if (reduces_across_blocks(g_, plan_.nest_plan, plan_.nest_of(op)))
      wanted.insert(wanted.end() - 1, StatementKind::kExchange);
    if (kinds != wanted) fail(name(op) + " lacks a statement, or has one too many");
    if (!is_reduced || plan_.statements.empty()) return;
    const auto it = plan_.accumulators.find(op);
    const auto is_loop = [&](size_t position) { return position < plan_.loops_of(op).size(); };
    if (it == plan_.accumulators.end() || it->second.elements < 0 || !std::ranges::all_of(it->second.places, is_loop))
      fail(name(op) + " has no accumulator");
    const auto exchange = plan_.exchanges.find(op);
    if ((exchange == plan_.exchanges.end() ? std::vector<ParallelType>() : exchange->second.threads) !=
        combined_threads(plan_, op))
      fail(name(op) + " has another exchange than its loops say");
  }

  void buffers() {
    const auto has_buffer = [&](ValueId v) {
      return v.index < plan_.buffers.size() && plan_.buffers[v.index].value == v &&
             plan_.buffers[plan_.buffers[v.index].storage.index].value == plan_.buffers[v.index].storage;
    };
    std::vector<size_t> slots(plan_.buffers.size());
    for (const auto& slot : plan_.shared_slots)
      for (ValueId v : slot) ++slots[v.index];
    for (ValueId v : inputs(g_))
      if (g_.is_tensor(v) && !has_buffer(v)) fail(plan_.place_of(v) + " is kept nowhere");
    for (const Nest& nest : plan_.nest_plan.nests)
      for (ValueId v : g_[nest.op].results) {
        if (!has_buffer(v)) {
          fail(plan_.place_of(v) + " is kept nowhere");
          continue;
        }
        const Buffer& b = plan_.buffer_of(v);
        if (b.is_parameter) {
          if (!plan_.buffer_of(b.storage).is_parameter) fail(plan_.place_of(v) + " lies in a tensor of a thread");
          continue;
        }
        if (slots[v.index] != (b.memory == MemoryType::kShared ? 1u : 0u))
          fail(plan_.place_of(v) + " has no slot of shared memory, or two");
        if (b.home != kNone && !nodes_.contains(b.home)) {
          fail(plan_.place_of(v) + " lives in no loop");
          continue;
        }
        // Shared memory exists from the first statement to the last.
        if (b.memory == MemoryType::kShared) continue;
        for (const auto& [statement, parent] : statements_) {
          const Statement& of = plan_.tree.statements[statement];
          const bool reads = of.kind == StatementKind::kMain && std::ranges::count(g_[of.op].operands, v) > 0;
          const bool writes = g_[of.op].results[0] == g_[nest.op].results[0] &&
                              (of.kind == StatementKind::kFinal || !demands(g_[of.op].kind, kReduction));
          if ((reads || writes) && !stands_in(parent, b.home))
            fail(plan_.place_of(v) + " is used outside the loop that it lives in");
        }
      }
  }

  void cascade(OpId op, const Cascade& c) {
    const auto& path = plan_.nest_of(op).path;
    if (c.position >= path.size() || !plan_.strips.contains(path[c.position]) || c.levels < 0 || c.levels > 16 ||
        (c.is_compensated && (c.levels != 1 || g_[op].kind != OpKind::kSum)))
      fail(name(op) + " has partial sums of a loop without strips");
  }

  void exchange(OpId op, const Exchange& e) {
    if (!demands(g_[op].kind, kReduction) || e.threads.empty()) fail(name(op) + " has nothing to exchange");
    if (e.is_last && !e.is_grid) fail(name(op) + " is given to the last block, but blocks exchange nothing");
    const bool is_of_axis = plan_.cluster && std::ranges::count(e.threads, plan_.cluster->axis) > 0;
    if (e.lanes != 0 && e.lanes != lanes_of(plan_, e))
      fail(name(op) + " is combined by " + std::to_string(e.lanes) + " lanes, which do not hold its rows");
    if (e.is_cluster && (e.is_last || !is_of_axis)) fail(name(op) + " is no exchange of a cluster");
  }

  void accesses() {
    if (plan_.statements.size() != plan_.tree.statements.size()) return fail("some statements are not planned");
    for (uint32_t i = 0; i < plan_.statements.size(); ++i) {
      const Statement& s = plan_.tree.statements[i];
      const StatementPlan& p = plan_.statements[i];
      const Op& op = g_[s.op];
      const bool is_reduced = demands(op.kind, kReduction);
      const size_t reads = p.vector ? 1 : s.kind == StatementKind::kMain ? op.operands.size() : 0;
      const size_t writes = is_reduced && s.kind != StatementKind::kFinal ? 0 : op.results.size();
      if (p.reads.size() != reads || p.writes.size() != writes) {
        fail("a statement of " + name(s.op) + " lacks an access");
        continue;
      }
      for (size_t k = 0; k < reads; ++k)
        if (p.reads[k].value != (op.operands[k] && g_.is_tensor(op.operands[k]) ? op.operands[k] : ValueId()))
          fail("a statement of " + name(s.op) + " reads another tensor than its operand");
      for (size_t k = 0; k < writes; ++k)
        if (p.writes[k].value != op.results[k])
          fail("a statement of " + name(s.op) + " writes another tensor than its result");
      if (op.kind == OpKind::kCat &&
          !std::ranges::all_of(p.reads, [](const Access& a) { return a.position.has_value(); }))
        fail("a statement of " + name(s.op) + " lacks a place along the axis");
    }
    for (const auto& [node, list] : plan_.unswitched)
      for (const Hoisted& h : list)
        if (h.statement >= plan_.statements.size()) fail("a condition of no statement is hoisted");
  }

  const KernelPlan& plan_;
  const Graph& g_;
  std::map<uint32_t, uint32_t> nodes_, statements_;  // by index: the loop around it
  std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> check_plan(const KernelPlan& plan) { return PlanChecker(plan).run(); }

}  // namespace fusebox
