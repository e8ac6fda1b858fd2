// Decides where each tensor is kept, and which domains lay it out.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"

namespace fusebox {
namespace {

bool has_place(const KernelPlan& plan, const Buffer& b, uint32_t shared, size_t position, ParallelType p) {
  if (!is_thread(p)) return position > shared || (position == shared && !plan.defects().has(Defect::kInlineOneDeeper));
  return is_block(p) && (b.memory == MemoryType::kShared) && plan.used_threads.contains(p) &&
         !plan.defects().has(Defect::kBufferSharedLoop);
}

// Throws if a loop over the threads that see the buffer repeats an element, because consumers concretize a broadcast axis
// that is part of it, and the buffer has no place for that axis: several threads would store the element.
void require_places(const KernelPlan& plan, const Buffer& b, DomainId loop) {
  const Graph& g = *plan.graph;
  for (DomainId axis : leaves(g, loop)) {
    const auto holds = [&](DomainId place) { return follows_from(g, place, axis); };
    if (plan.nest_plan.promoted.contains(axis) && std::ranges::none_of(b.places, holds))
      throw Error(
          ErrorCode::kIllegalAllocation,
          "its layout has no place for this axis, along which its consumers' threads compute it again; inline it "
          "outside that axis, or lay it out by its loops",
          plan.place_of(b.value) + "." + g[axis].name);
  }
}

}  // namespace

KernelPlan plan_buffers(KernelPlan plan) {
  const Graph& g = *plan.graph;
  plan.buffers.resize(g.values.size());
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.kind != OpKind::kInput || !g.is_tensor(op.results[0])) continue;
    Buffer& buffer = plan.buffers[op.results[0].index];
    buffer.value = buffer.storage = op.results[0];
    buffer.memory = MemoryType::kGlobal;
    buffer.is_parameter = true;
  }
  std::map<ValueId, ValueId> alias;
  std::set<ValueId> is_output;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (!is_output.insert(out.value).second)
      throw Error(ErrorCode::kUnsupportedSchedule, "this tensor is an output twice; copy it with `set` for the second",
                  plan.place_of(out.value));
    if (out.alias) alias[out.value] = out.alias;
  }
  for (const Nest& nest : plan.nest_plan.nests) {
    const ValueId first = g[nest.op].results[0];
    const auto& loop = loop_of(g.tensor_of(first));
    for (ValueId v : g[nest.op].results) {
      const Tensor& tensor = g.tensor_of(v);
      Buffer& buffer = plan.buffers[v.index];
      buffer.value = buffer.storage = v;
      buffer.memory = tensor.memory;
      if (is_output.contains(v)) {
        if (tensor.memory != MemoryType::kUnset && tensor.memory != MemoryType::kGlobal)
          throw Error(ErrorCode::kIllegalAllocation,
                      "an output is kept in global memory; cache it before for other memory", plan.place_of(v));
        buffer.memory = MemoryType::kGlobal;
        buffer.is_parameter = true;
        if (const auto it = alias.find(v); it != alias.end()) buffer.storage = it->second;
      }
      if (buffer.memory == MemoryType::kUnset) buffer.memory = MemoryType::kLocal;
      if (buffer.memory == MemoryType::kSymmetric)
        throw Error(ErrorCode::kUnsupportedSchedule, "symmetric memory is not supported by lowering yet",
                    plan.place_of(v));
      buffer.home = nest.shared > 0 ? nest.path[nest.shared - 1] : LoopNode::kNoNode;
      if (buffer.memory == MemoryType::kGlobal) {
        buffer.is_parameter = true;
        // All results of an op share the loops of the first, whose axes are the promoted ones.
        const Tensor& looped = g.tensor_of(first);
        auto broadcasts = logical_without_reductions(g, looped);
        broadcasts.insert(broadcasts.end(), looped.loop_broadcasts.begin(), looped.loop_broadcasts.end());
        for (DomainId d : broadcasts)
          if (plan.nest_plan.promoted.contains(d))
            throw Error(ErrorCode::kIllegalAllocation,
                        "a global tensor is computed again along a broadcast axis that its consumers concretize; "
                        "inline it outside that axis",
                        plan.place_of(v) + "." + g[d].name);
        continue;
      }
      // A local result without readers exists only because its siblings do. It needs no places: each value overwrites
      // the one before.
      if (g[nest.op].results.size() > 1 && buffer.memory == MemoryType::kLocal &&
          plan.nest_plan.readers[v.index].empty())
        continue;
      // All results of an op share the loops of the first, and so its places.
      const Tensor& leader = g.tensor_of(first);
      const auto placed = [&](DomainId d) {
        const size_t i = position_in(loop, d);
        if (i == loop.size()) return true;
        const ParallelType p = plan.nest_plan.nodes[nest.path[i]].parallel;
        return !is_reduction(g, d) && has_place(plan, buffer, nest.shared, i, p);
      };
      for (DomainId d : leader.allocation.empty() ? loop : leader.allocation)
        if (placed(d) && g[d].iter_type != IterType::kReduction) buffer.places.push_back(d);
      for (size_t i = 0; i < loop.size() && buffer.memory == MemoryType::kShared; ++i)
        if (is_block(plan.nest_plan.nodes[nest.path[i]].parallel)) require_places(plan, buffer, loop[i]);
    }
  }
  return plan;
}

}  // namespace fusebox
