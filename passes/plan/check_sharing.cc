// Checks that a reader gets the value that was made for it. Shared loops must agree. A value may cross threads only
// through memory that both threads see.
#include <algorithm>
#include <map>
#include <set>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/step/step_rules.h"
#include "ir/table/error.h"
#include "passes/nest/coverage.h"
#include "passes/plan/correspondence.h"
#include "passes/plan/plan_stages.h"

namespace fusebox {

bool crosses_threads(KernelPlan& plan, OpId producer, OpId consumer, bool grid) {
  const Graph& g = *plan.graph;
  const Nest& from = plan.nest_of(producer);
  const auto& loop = loop_of(g.tensor_of(g[producer].results[0]));
  const auto& results = g[producer].results;
  for (size_t k = 0; k < g[consumer].operands.size(); ++k) {
    const ValueId operand = g[consumer].operands[k];
    if (!operand || std::find(results.begin(), results.end(), operand) == results.end()) continue;
    if (reads_by_data(g, g[consumer], k)) return true;
    const Correspondence& same = correspondence(plan, consumer, k);
    for (ParallelType p : plan.used_threads) {
      if (is_grid(p) != grid) continue;
      bool found = false;
      for (size_t i = 0; i < loop.size(); ++i) {
        if (plan.nest_plan.nodes[from.path[i]].parallel != p || is_reduction(g, loop[i])) continue;
        found = true;
        if (!same.thread[i]) return true;
      }
      // The producer has no loop along this dimension, so only the thread at index 0 stores.
      if (!found) return true;
    }
  }
  return false;
}

namespace {

// One serial loop of a producer and its consumer.
struct SharedLoop {
  uint32_t node;
  OpId producer, consumer;
  bool if_any;  // the two extents are only equal if the consumer's loops run
};

// A loop takes the extent of its first member. If another member's is only equal where that member's loops run, it
// takes the extent of the members whose values are needed behind the loop: if that is 0, nobody needs what the others make.
//
//   %x is made in a loop of 1 and read in a loop of n - 3, and the launch checks that n is at most 4
void settle_counts(KernelPlan& plan, const std::vector<SharedLoop>& all) {
  const Graph& g = *plan.graph;
  std::set<uint32_t> open;
  for (const SharedLoop& s : all)
    if (s.if_any) open.insert(s.node);
  for (uint32_t node : open) {
    std::map<OpId, OpId> group;  // members whose extents are equal in every run, by the next one
    const auto find = [&](OpId op) {
      while (group.contains(op)) op = group.at(op);
      return op;
    };
    const auto join = [&](OpId a, OpId b) {
      if (const OpId from = find(a), to = find(b); from != to) group.emplace(std::max(from, to), std::min(from, to));
    };
    const auto stands_outside = [&](OpId reader) { return std::ranges::count(plan.nest_of(reader).path, node) == 0; };
    const auto is_needed_behind = [&](OpId op) {
      return std::ranges::any_of(g[op].results, [&](ValueId v) {
        const auto& readers = plan.nest_plan.readers[v.index];
        return is_output(g, v) || std::ranges::any_of(readers, stands_outside);
      });
    };
    std::set<OpId> last;
    for (const SharedLoop& s : all) {
      if (s.node != node) continue;
      for (OpId op : {s.producer, s.consumer})
        if (is_needed_behind(op)) last.insert(op);
      if (!s.if_any) join(s.producer, s.consumer);
    }
    if (last.empty()) continue;
    const OpId first = *last.begin();
    OpenExtents extents(plan);
    const auto loop_at_node = [&](OpId op) {
      const auto& path = plan.nest_of(op).path;
      return plan.loops_of(op)[static_cast<size_t>(std::ranges::find(path, node) - path.begin())];
    };
    const auto count_of = [&](OpId op) { return extents.of(g[op].results[0]).extent(loop_at_node(op)); };
    for (OpId op : last)
      if (extents.algebra.equal(count_of(op), count_of(first))) join(op, first);
    for (OpId op : last)
      if (find(op) != find(first))
        throw Error(ErrorCode::kIllegalInline,
                    "the loop may run for this tensor and not for " + plan.place_of(g[first].results[0]) +
                        ", which shares it; inline further out, or recompute what both read",
                    plan.place_of(g[op].results[0]));
    const OpId op = find(first);
    plan.nest_plan.nodes[node].op = op;
    plan.nest_plan.nodes[node].domain = loop_at_node(op);
  }
}

}  // namespace

KernelPlan check_sharing(KernelPlan plan) {
  const Graph& g = *plan.graph;
  // A reduction loop must not be made from a promoted broadcast: it cannot tell the elements of the promoted axis
  // apart.
  for (const Nest& nest : plan.nest_plan.nests) {
    const ValueId leader = g[nest.op].results[0];
    if (!demands(g[nest.op].kind, kReduction)) continue;
    for (DomainId d : loop_of(g.tensor_of(leader))) {
      if (!is_reduction(g, d)) continue;
      const auto reduced = leaves(g, d);
      for (DomainId leaf : reduced)
        if (plan.nest_plan.promoted.contains(leaf))
          throw Error(
              ErrorCode::kIllegalInline,
              "a loop that reduces is made of a broadcast axis that the shared loops concretize; inline outside "
              "that axis",
              plan.place_of(leader) + "." + g[d].name);
      // A broadcast axis must not be part of a reduction loop and of a kept loop. The store stands outside the
      // reduction loop, so it cannot check the bounds of the whole axis.
      const auto is_broadcast = [&](DomainId leaf) { return g[leaf].iter_type == IterType::kBroadcast; };
      for (DomainId other : loop_of(g.tensor_of(leader))) {
        const auto kept = leaves(g, other);
        if (is_reduction(g, other) || std::all_of(kept.begin(), kept.end(), is_broadcast)) continue;
        for (DomainId leaf : kept)
          if (is_broadcast(leaf) && std::find(reduced.begin(), reduced.end(), leaf) != reduced.end())
            throw Error(ErrorCode::kIllegalReduction,
                        "a broadcast axis is made part of a loop that reduces and of one that does not; merge it with "
                        "one of them whole",
                        plan.place_of(leader) + "." + g[d].name);
      }
    }
  }
  for (const CutLoop& cut : cut_loops(g, plan.nest_plan))
    for (const Nest& nest : plan.nest_plan.nests)
      for (size_t k = 0; k < g[nest.op].operands.size(); ++k) {
        const ValueId v = g[nest.op].operands[k];
        if (!v || !g.is_tensor(v) || g[v].def != cut.op) continue;
        const bool is_inside = !reads_by_data(g, g[nest.op], k) &&
                               (walks_alike(plan, nest.op, k) || reads_within(plan, nest.op, k, cut.cut));
        if (!is_inside) refuse_cut_loop(g, cut);
      }
  std::vector<SharedLoop> shared;
  for (const Nest& nest : plan.nest_plan.nests) {
    const OpId consumer = nest.op;
    const Op& op = g[consumer];
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ValueId operand = op.operands[k];
      if (!operand || !g.is_tensor(operand) || !plan.has_nest(g[operand].def)) continue;
      const Nest& from = plan.nest_of(g[operand].def);
      const ValueId leader = g[g[operand].def].results[0];
      const auto& loop = loop_of(g.tensor_of(leader));
      const Buffer& buffer = plan.buffers[operand.index];
      if (reads_by_data(g, op, k) && buffer.memory != MemoryType::kGlobal)
        throw Error(ErrorCode::kIllegalExchange,
                    "data choose which element is read, so the tensor must be in global memory",
                    plan.place_of(operand));
      const Correspondence& same = correspondence(plan, consumer, k);
      const size_t together = common_loops(from, nest);
      for (size_t i = 0; i < loop.size(); ++i) {
        const std::string place = plan.place_of(leader) + "." + g[loop[i]].name;
        const ParallelType parallel = plan.nest_plan.nodes[from.path[i]].parallel;
        if (i < together && (i < from.shared || !is_thread(parallel))) {
          if (is_reduction(g, loop[i]))
            throw Error(ErrorCode::kIllegalInline,
                        "a consumer cannot stand inside the loop that reduces the tensor; inline outside it", place);
          if (!same.shared[i] || (same.at_every_point[i] && !plan.is_replicated(loop[i])))
            throw Error(ErrorCode::kIllegalInline,
                        "the loop is not the same one in consumer " + plan.place_of(op.results[0]) +
                            "; give both the same transforms or inline further out",
                        place);
          if (!is_thread(parallel)) shared.push_back({from.path[i], from.op, consumer, same.if_any[i]});
          if (parallel == ParallelType::kVectorize)
            throw Error(ErrorCode::kIllegalVectorize, "a vectorized loop cannot be shared; inline outside it", place);
        }
        if (is_reduction(g, loop[i]) || !is_thread(parallel)) continue;
        // If this memory has no place for the threads of a dimension, the reader must be the thread that made the
        // value.
        const bool place_for_threads =
            buffer.memory == MemoryType::kGlobal || (buffer.memory == MemoryType::kShared && is_block(parallel));
        if (!place_for_threads && !same.thread[i] && !plan.is_replicated(loop[i]))
          throw Error(ErrorCode::kIllegalExchange,
                      "consumer " + plan.place_of(op.results[0]) + " reads a value of another " +
                          (is_grid(parallel) ? "block" : "thread") + " through " + std::string(text(buffer.memory)) +
                          " memory; put the tensor in " + (is_grid(parallel) ? "global" : "shared") +
                          " memory or give both one " + std::string(text(parallel)) + " loop",
                      place);
      }
    }
  }
  settle_counts(plan, shared);
  return plan;
}

}  // namespace fusebox
