// Finds *replicated* broadcast axes: axes along which every thread computes the same value.
//
// Take a value in a thread's memory (or in a block's), and a thread loop that is made from broadcasts alone. Along that
// loop the value has one element, at index 0. A reader on another thread would have to fetch it from there. The loop
// does not change the value, so all threads compute it instead, and each reads its own. The value of a replicated axis
// is 0 at every point. The loops made from it are not checked, and neither is the launch.
//
//   m = sum x over [1], reduced over block.x;  b = broadcast m [i0 grid.x, i1 block.x], read by two nests, so that it
//   shares no loop i1 with them   →   b.i1 is replicated: each thread broadcasts the sum, which all of them hold
//
// The operands of a replicated op must be there in every thread as well, so the stage runs from the last op to the
// first.
#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/plan/correspondence.h"
#include "passes/plan/plan_stages.h"

namespace fusebox {

namespace {

class Replicator {
 public:
  explicit Replicator(KernelPlan& plan) : plan_(plan), g_(*plan.graph) {}

  void run() {
    for (size_t i = plan_.nest_plan.nests.size(); i-- > 0;) replicate(plan_.nest_plan.nests[i]);
  }

 private:
  bool is_kept_per_element(const Nest& nest) const {
    const auto& results = g_[nest.op].results;
    return std::any_of(results.begin(), results.end(),
                       [&](ValueId v) { return plan_.buffers[v.index].memory == MemoryType::kGlobal; });
  }

  // The axes that a loop is made from, if all are broadcasts that are not promoted and not part of a reduction loop.
  // Otherwise none.
  std::vector<DomainId> broadcast_axes(const Nest& nest, DomainId loop) const {
    const auto axes = leaves(g_, loop);
    const auto& loops = loop_of(g_.tensor_of(g_[nest.op].results[0]));
    const auto is_reduced = [&](DomainId axis) {
      return std::any_of(loops.begin(), loops.end(),
                         [&](DomainId d) { return is_reduction(g_, d) && follows_from(g_, d, axis); });
    };
    for (DomainId axis : axes)
      if (g_[axis].iter_type != IterType::kBroadcast || plan_.nest_plan.promoted.contains(axis) || is_reduced(axis))
        return {};
    return axes;
  }

  // Whether a loop is made from one of these axes and from another axis that is not replicated. Such a loop tells
  // threads apart. Threads beyond the one element of the broadcast would read values that nobody computed.
  bool is_part_of_another(const Nest& nest, const std::vector<DomainId>& axes) const {
    const auto is_one_of = [&](DomainId axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
    for (DomainId d : loop_of(g_.tensor_of(g_[nest.op].results[0]))) {
      const auto own = leaves(g_, d);
      const auto is_other = [&](DomainId axis) { return !is_one_of(axis) && !plan_.replicated.contains(axis); };
      if (std::any_of(own.begin(), own.end(), is_one_of) && std::any_of(own.begin(), own.end(), is_other)) return true;
    }
    return false;
  }

  void replicate(const Nest& nest) {
    if (is_kept_per_element(nest)) return;
    const auto& loop = loop_of(g_.tensor_of(g_[nest.op].results[0]));
    bool is_changed = false;
    for (size_t i = 0; i < loop.size(); ++i) {
      const ParallelType p = plan_.nest_plan.nodes[nest.path[i]].parallel;
      if (is_reduction(g_, loop[i]) || plan_.is_replicated(loop[i])) continue;
      if (is_thread(p) ? plan_.has_place_for(nest, p) : i >= nest.shared) continue;
      const auto axes = broadcast_axes(nest, loop[i]);
      if (axes.empty() || !is_asked_for(nest, i) || is_part_of_another(nest, axes)) continue;
      plan_.replicated.insert(axes.begin(), axes.end());
      is_changed = true;
    }
    if (is_changed) plan_.views->of_op[nest.op.index].clear();
  }

  // Whether a reader needs the copies: it is another thread, or it runs the loop at every point because it is
  // replicated itself.
  bool is_asked_for(const Nest& nest, size_t i) {
    const ParallelType p = plan_.nest_plan.nodes[nest.path[i]].parallel;
    for (ValueId v : g_[nest.op].results)
      for (OpId reader : plan_.nest_plan.readers[v.index]) {
        const auto& operands = g_[reader].operands;
        for (size_t k = 0; k < operands.size(); ++k) {
          if (operands[k] != v) continue;
          const Correspondence& same = correspondence(plan_, reader, k);
          if (is_thread(p) && !same.thread[i]) return true;
          if (!is_thread(p) && same.at_every_point[i]) return true;
        }
      }
    return false;
  }

  KernelPlan& plan_;
  const Graph& g_;
};

}  // namespace

KernelPlan plan_replicas(KernelPlan plan) {
  Replicator(plan).run();
  return plan;
}

}  // namespace fusebox
