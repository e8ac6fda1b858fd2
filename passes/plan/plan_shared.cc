// Assigns shared buffers to slots. Buffers of one slot lie on one another.
//
// A buffer lives from the first statement that touches it to the last, in the order of the tree. If a serial loop holds
// some of these statements, but not all, the whole loop is part of that life. Two buffers may take one slot if their
// lives do not meet. Synchronisation (plan_syncs.cc) then puts a barrier between the last access to one and the first
// access to the other. Slots stand one after another, each at a multiple of 128 bytes, which suits every vector width
// and swizzle.
#include <algorithm>

#include "passes/plan/plan_stages.h"

namespace fusebox {
namespace {

struct Life {
  size_t first = SIZE_MAX, last = 0;
  void take(size_t from, size_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
  bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

class LifePlanner {
 public:
  explicit LifePlanner(const KernelPlan& plan) : plan_(plan), g_(*plan.graph), lives_(plan.graph->values.size()) {
    for (const Statement& s : plan.tree.statements)
      for (ValueId v : shared_of(s)) ++totals_[v];
    walk(plan.tree.top);
  }

  const Life& of(ValueId v) const { return lives_[v.index]; }

 private:
  // The buffers that a range of statements touches, with the number of statements.
  using Touched = std::map<ValueId, size_t>;

  Touched walk(const std::vector<TreeChild>& children) {
    Touched all;
    for (const TreeChild& c : children) {
      const size_t from = next_;
      const Touched inside = c.is_node ? walk(plan_.tree.children[c.index]) : touch(plan_.tree.statements[c.index]);
      const bool repeats = c.is_node && is_real_loop(plan_.tree.nodes[c.index].parallel);
      for (const auto& [v, count] : inside) {
        all[v] += count;
        if (repeats && count < totals_[v]) lives_[v.index].take(from, next_ - 1);
      }
    }
    return all;
  }

  Touched touch(const Statement& s) {
    Touched result;
    for (ValueId v : shared_of(s)) {
      ++result[v];
      lives_[v.index].take(next_, next_);
    }
    ++next_;
    return result;
  }

  std::vector<ValueId> shared_of(const Statement& s) const {
    std::vector<ValueId> result;
    for (const auto* list : {&g_[s.op].operands, &g_[s.op].results})
      for (ValueId v : *list)
        if (v && g_.is_tensor(v) && plan_.buffers[v.index].memory == MemoryType::kShared)
          if (list == &g_[s.op].results || !plan_.defects().has(Defect::kSharedReusedEarly)) result.push_back(v);
    return result;
  }

  const KernelPlan& plan_;
  const Graph& g_;
  std::vector<Life> lives_;
  Touched totals_;
  size_t next_ = 0;
};

}  // namespace

KernelPlan plan_shared(KernelPlan plan) {
  const Graph& g = *plan.graph;
  std::vector<ValueId> shared;
  for (const Nest& nest : plan.nest_plan.nests)
    for (ValueId v : g[nest.op].results)
      if (!plan.buffers[v.index].is_parameter && plan.buffers[v.index].memory == MemoryType::kShared)
        shared.push_back(v);
  if (shared.empty()) return plan;
  const LifePlanner lives(plan);
  for (ValueId v : shared) {
    const auto fits = [&](const std::vector<ValueId>& slot) {
      return std::none_of(slot.begin(), slot.end(), [&](ValueId other) { return lives.of(v).meets(lives.of(other)); });
    };
    auto slot = std::find_if(plan.shared_slots.begin(), plan.shared_slots.end(), fits);
    if (slot == plan.shared_slots.end()) slot = plan.shared_slots.insert(slot, std::vector<ValueId>());
    plan.buffers[v.index].slot = static_cast<uint32_t>(slot - plan.shared_slots.begin());
    slot->push_back(v);
  }
  return plan;
}

}  // namespace fusebox
