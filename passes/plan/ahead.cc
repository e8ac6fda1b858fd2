#include "passes/plan/ahead.h"

#include <algorithm>

#include "ir/table/error.h"

namespace fusebox {
namespace {

constexpr int64_t kMostStages = 8;

int64_t depth_of(const KernelPlan& plan, ValueId v) { return plan.graph->tensor_of(v).circular_depth; }

// Whether nothing stands below the child but loads of circular buffers that live in the loop `home`.
bool only_loads(const KernelPlan& plan, const TreeChild& child, uint32_t home) {
  if (child.is_node)
    return std::ranges::all_of(plan.tree.children[child.index],
                               [&](const TreeChild& inner) { return only_loads(plan, inner, home); });
  const Op& op = (*plan.graph)[plan.tree.statements[child.index].op];
  return depth_of(plan, op.results[0]) > 0 && plan.buffer_of(op.results[0]).home == home;
}

bool has_unswitch(const KernelPlan& plan, const TreeChild& child) {
  return child.is_node && (plan.parallel_of(child.index) == ParallelType::kUnswitch ||
                           std::ranges::any_of(plan.tree.children[child.index],
                                               [&](const TreeChild& inner) { return has_unswitch(plan, inner); }));
}

bool makes(const KernelPlan& plan, const TreeChild& child, ValueId v) {
  if (!child.is_node) return plan.tree.statements[child.index].op == (*plan.graph)[v].def;
  return std::ranges::any_of(plan.tree.children[child.index],
                             [&](const TreeChild& inner) { return makes(plan, inner, v); });
}

}  // namespace

std::vector<ValueId> tensors_ahead(const KernelPlan& plan, uint32_t node) {
  std::vector<ValueId> result;
  if (const auto it = plan.at_home.find(node); it != plan.at_home.end())
    std::ranges::copy_if(it->second, std::back_inserter(result), [&](ValueId v) { return depth_of(plan, v) > 0; });
  return result;
}

std::vector<size_t> children_ahead(const KernelPlan& plan, uint32_t node) {
  std::vector<size_t> result;
  const auto& children = plan.tree.children[node];
  for (size_t i = 0; i < children.size(); ++i)
    if (only_loads(plan, children[i], node)) result.push_back(i);
  return result;
}

void check_ahead(const KernelPlan& plan) {
  const Graph& g = *plan.graph;
  for (const Nest& nest : plan.nest_plan.nests) {
    const ValueId v = g[nest.op].results[0];
    const int64_t depth = depth_of(plan, v);
    if (depth == 0) continue;
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kUnsupportedSchedule, "a circular buffer " + why, plan.place_of(v));
    };
    const Buffer& b = plan.buffer_of(v);
    const Op& op = g[nest.op];
    if (op.kind != OpKind::kSet || g[g[op.operands[0]].def].kind != OpKind::kInput)
      refuse("copies an input, as cache_after makes it; leave the step out here");
    if (b.memory != MemoryType::kLocal) refuse("is kept in registers; leave the step out here");
    if (b.home == LoopNode::kNoNode || plan.parallel_of(b.home) != ParallelType::kSerial)
      refuse("is filled and read in one serial loop; inline it at such a loop");
    if (depth > kMostStages) refuse("has " + std::to_string(kMostStages) + " stages at most");
    const auto& children = plan.tree.children[b.home];
    const auto loads = std::ranges::find_if(children, [&](const TreeChild& c) { return makes(plan, c, v); });
    if (loads == children.end() || !only_loads(plan, *loads, b.home) || has_unswitch(plan, *loads))
      refuse("has loops of its own inside the loop that reads it, and no unswitch; inline it at that loop");
    for (const ValueId other : tensors_ahead(plan, b.home))
      if (depth_of(plan, other) != depth) refuse("has as many stages as the others that its loop reads");
  }
}

}  // namespace fusebox
