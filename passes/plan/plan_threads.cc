// Decides which thread dimensions the kernel uses, and what is known of the extent of each launch.
#include <algorithm>
#include <iterator>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

// The swizzle x, y → x, y xor x permutes the points of y only if y's extent is a power of two and x's extent is no
// larger.
void check_swizzle(const Graph& g, IndexAlgebra& algebra, DomainValues& values, ValueId v, const Transform& t) {
  if (t.kind != TransformKind::kSwizzle || t.swizzle != SwizzleType::kXor) return;
  const auto x = algebra.constant_value(values.extent(t.inputs[0])),
             y = algebra.constant_value(values.extent(t.inputs[1]));
  if (x && y && *y > 0 && (*y & (*y - 1)) == 0 && *x <= *y) return;
  throw Error(ErrorCode::kIllegalSwizzle,
              "an xor swizzle needs a second domain of a constant power of two, and a first one that is no larger; "
              "split by such factors first, or use a cyclic one",
              "%" + g[v].name + "." + g[t.inputs[1]].name);
}

// A GPU forms clusters only where their size divides the number of blocks, so a cluster is all blocks of its axis.
std::optional<Cluster> cluster_of(const KernelPlan& plan) {
  const Graph& g = *plan.graph;
  for (OpId id : g[Graph::body()].ops) {
    if (g[id].kind != OpKind::kCluster) continue;
    const Cluster cluster{g[id].attrs.enumerator<ParallelType>(AttrKey::kParallel),
                          g[id].attrs.integer(AttrKey::kClusterBlocks)};
    const auto launch = plan.largest_launch.find(cluster.axis);
    const bool has_all = launch != plan.largest_launch.end() && launch->second == cluster.blocks;
    if (has_all || plan.defects().has(Defect::kClusterAxisUnchecked)) return cluster;
    const std::string blocks = std::to_string(cluster.blocks);
    throw Error(ErrorCode::kIllegalCluster,
                "a cluster of " + blocks + " blocks needs exactly so many along " + std::string(text(cluster.axis)) +
                    "; split a domain by " + blocks + " outer, and parallelize the outer part on this axis alone",
                "@" + g.name);
  }
  return std::nullopt;
}

}  // namespace

KernelPlan plan_threads(KernelPlan plan) {
  const Graph& g = *plan.graph;
  check_coverage(g, plan.nest_plan);
  OpenExtents open(plan);
  IndexAlgebra& extents = open.algebra;  // no loops: equal forms are equal extents
  std::map<ParallelType, Form> first;
  for (const Nest& nest : plan.nest_plan.nests) {
    const ValueId v = g[nest.op].results[0];
    DomainValues values = open.of(v);
    const auto& loop = loop_of(g.tensor_of(v));
    for (ValueId result : g[nest.op].results) {
      DomainValues own = open.of(result);
      for (TransformId id : g.tensor_of(result).transforms) check_swizzle(g, extents, own, result, g[id]);
    }
    for (size_t i = 0; i < loop.size(); ++i) {
      const ParallelType p = plan.nest_plan.nodes[nest.path[i]].parallel;
      if (p == ParallelType::kBulk || p == ParallelType::kMma || p == ParallelType::kGroup ||
          p == ParallelType::kStream || (p >= ParallelType::kMeshX && p <= ParallelType::kMeshZ))
        throw Error(ErrorCode::kUnsupportedSchedule,
                    "lowering does not know loops that are " + std::string(text(p)) +
                        " yet; use grid, block, unroll or vectorize",
                    plan.place_of(v) + "." + g[loop[i]].name);
      if (!is_thread(p)) continue;
      plan.used_threads.insert(p);
      const Form e = values.extent(loop[i]);
      if (!plan.may_be_empty.contains(p) && !extents.prove_less(Form{}, e)) plan.may_be_empty.insert(p);
      const auto [it, is_new] = first.emplace(p, e);
      if (is_new)
        plan.exact_launch[p] = true;
      else if (!(it->second == e))
        plan.exact_launch[p] = false;
      const auto constant = extents.constant_value(e);
      if (is_new) plan.largest_launch[p] = constant;
      auto& largest = plan.largest_launch[p];
      largest = largest && constant ? std::optional(std::max(*largest, *constant)) : std::nullopt;
    }
  }
  plan.cluster = cluster_of(plan);
  return plan;
}

// If all loops along a dimension are empty, it launches no thread. Elements that these loops do not index would then
// not be written: a sum over nothing, or the result of another nest. Such a dimension launches at least one thread.
KernelPlan plan_empty_threads(KernelPlan plan) {
  const Graph& g = *plan.graph;
  std::set<ParallelType> needed;
  for (const Nest& nest : plan.nest_plan.nests) {
    const auto& loop = plan.loops_of(nest.op);
    const bool is_seen = std::any_of(g[nest.op].results.begin(), g[nest.op].results.end(),
                                     [&](ValueId r) { return plan.buffers[r.index].memory == MemoryType::kGlobal; });
    std::set<ParallelType> over;
    for (size_t i = 0; i < loop.size(); ++i) {
      const ParallelType p = plan.nest_plan.nodes[nest.path[i]].parallel;
      if (is_thread(p) && !is_reduction(g, loop[i])) over.insert(p);
    }
    for (ParallelType p : plan.used_threads)
      if (is_seen && !over.contains(p)) needed.insert(p);
  }
  std::set_intersection(plan.may_be_empty.begin(), plan.may_be_empty.end(), needed.begin(), needed.end(),
                        std::inserter(plan.launched_empty, plan.launched_empty.end()));
  return plan;
}

}  // namespace fusebox
