// Decides where threads wait for each other. Two accesses that may touch the same bytes, one of them a write, need a
// barrier between them unless one thread makes both.
//
// The walk keeps the accesses since the last barrier: the ops that wrote and the ops that read each shared or global
// buffer. If the subtree of a child conflicts with them, a barrier goes before that child. It stands in the innermost
// loop that holds both accesses. A serial loop is walked twice, so that the end of one iteration meets the start of the
// next. The barriers inside of an exchange do not count: a group of one warp has none, and several exchanges share theirs.
#include <algorithm>

#include "passes/plan/correspondence.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

struct Access {
  ValueId buffer;
  OpId op;
  bool write = false;
  auto operator<=>(const Access&) const = default;
};

class SyncPlanner {
 public:
  explicit SyncPlanner(KernelPlan& plan) : plan_(plan), g_(*plan.graph) {
    subtree_.resize(plan.tree.nodes.size());
    own_.resize(plan.tree.statements.size());
    for (uint32_t s = 0; s < own_.size(); ++s) own_[s] = accesses(plan.tree.statements[s]);
    for (const TreeChild& c : plan.tree.top) collect(c);
  }

  void run() {
    std::set<Access> state;
    walk(plan_.tree.top, LoopNode::kNoNode, state);
  }

 private:
  // Whether accesses to a buffer can conflict: several threads see it, and the kernel writes it.
  bool matters(ValueId v) const {
    const Buffer& b = plan_.buffers[v.index];
    return b.memory == MemoryType::kShared || (b.memory == MemoryType::kGlobal && plan_.has_nest(g_[v].def));
  }

  std::set<Access> accesses(const Statement& s) const {
    std::set<Access> result;
    const Op& op = g_[s.op];
    if (s.kind == StatementKind::kMain)
      for (ValueId v : op.operands)
        if (v && g_.is_tensor(v) && matters(v)) result.insert({v, s.op, false});
    const bool stores = demands(op.kind, kReduction) ? s.kind == StatementKind::kFinal : true;
    if (stores)
      for (ValueId v : op.results)
        if (matters(v)) result.insert({v, s.op, true});
    return result;
  }

  const std::set<Access>& collect(const TreeChild& c) {
    if (!c.is_node) return own_[c.index];
    auto& all = subtree_[c.index];
    for (const TreeChild& inner : plan_.tree.children[c.index]) {
      const auto& more = collect(inner);
      all.insert(more.begin(), more.end());
    }
    return all;
  }

  bool crosses(OpId writer, OpId reader, bool grid) {
    const auto key = std::tuple(writer, reader, grid);
    const auto it = crosses_.find(key);
    if (it != crosses_.end()) return it->second;
    return crosses_[key] = crosses_threads(plan_, writer, reader, grid);
  }

  // The barrier that two sets of accesses need: 0 none, 1 block, 2 grid.
  int conflict(const std::set<Access>& before, const std::set<Access>& after) {
    int level = 0;
    for (const Access& a : before)
      for (const Access& b : after) {
        if (!(a.write || b.write)) continue;
        if (a.buffer != b.buffer) {
          // Two buffers of one slot: the bytes of any thread may overlap those of any other.
          const Buffer &x = plan_.buffers[a.buffer.index], &y = plan_.buffers[b.buffer.index];
          if (level < 1 && x.memory == MemoryType::kShared && y.memory == MemoryType::kShared && x.slot == y.slot &&
              !plan_.defects().has(Defect::kSharedReuseBarrier))
            level = 1;
          continue;
        }
        if (a.write && b.write) continue;  // one op writes a buffer: its elements differ
        const bool is_shared = plan_.buffers[a.buffer.index].memory == MemoryType::kShared;
        if (is_shared && a.write && plan_.defects().has(Defect::kBarrierAfterWriteDropped)) continue;
        if (is_shared && b.write && plan_.defects().has(Defect::kBarrierBeforeWriteDropped)) continue;
        const OpId writer = a.write ? a.op : b.op, reader = a.write ? b.op : a.op;
        if (plan_.buffers[a.buffer.index].memory == MemoryType::kGlobal && crosses(writer, reader, true)) level = 2;
        if (level < 1 && crosses(writer, reader, false)) level = 1;
      }
    return level;
  }

  // Whether a loop may have a second iteration.
  bool repeats(uint32_t node) {
    const LoopNode& loop = plan_.tree.nodes[node];
    if (!is_real_loop(loop.parallel)) return false;
    const Form extent = open_.of(g_[g_[loop.domain].tensor].value).extent(loop.domain);
    return open_.algebra.constant_value(extent) != 1;
  }

  void walk(const std::vector<TreeChild>& children, uint32_t node, std::set<Access>& state) {
    for (size_t i = 0; i < children.size(); ++i) {
      const TreeChild& c = children[i];
      const auto& inside = c.is_node ? subtree_[c.index] : own_[c.index];
      if (const int level = conflict(state, inside); level > 0) {
        const bool is_late = level == 1 && i + 1 < children.size() && plan_.defects().has(Defect::kBarrierMoved);
        if (level == 1 || !plan_.defects().has(Defect::kGridBarrierDropped))
          plan_.sync_points.insert({node, is_late ? i + 1 : i, level == 2 ? SyncScope::kGrid : SyncScope::kBlock});
        // A barrier of a block does not order the accesses of different blocks.
        std::erase_if(state, [&](const Access& a) {
          return level == 2 || plan_.buffers[a.buffer.index].memory != MemoryType::kGlobal;
        });
      }
      if (c.is_node) {
        std::set<Access> within;
        walk(plan_.tree.children[c.index], c.index, within);
        // The end of one iteration meets the start of the next.
        if (repeats(c.index)) walk(plan_.tree.children[c.index], c.index, within);
      }
      state.insert(inside.begin(), inside.end());
    }
  }

  KernelPlan& plan_;
  const Graph& g_;
  OpenExtents open_{plan_};
  std::vector<std::set<Access>> subtree_, own_;
  std::map<std::tuple<OpId, OpId, bool>, bool> crosses_;
};

}  // namespace

KernelPlan plan_syncs(KernelPlan plan) {
  SyncPlanner(plan).run();
  return plan;
}

}  // namespace fusebox
