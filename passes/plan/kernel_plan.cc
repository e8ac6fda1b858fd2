#include "passes/plan/kernel_plan.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/infer/is_library.h"
#include "ir/table/error.h"
#include "passes/plan/plan_stages.h"

namespace fusebox {

std::string_view text(CheckKind k) {
  constexpr std::string_view kTexts[] = {"domain", "loop extent", "thread", "last block"};
  return kTexts[static_cast<size_t>(k)];
}

bool KernelPlan::is_replicated(DomainId d) const {
  if (replicated.empty()) return false;
  const auto axes = leaves(*graph, d);
  return std::all_of(axes.begin(), axes.end(), [&](DomainId axis) { return replicated.contains(axis); });
}

bool KernelPlan::has_place_for(const Nest& nest, ParallelType p) const {
  const auto& results = (*graph)[nest.op].results;
  return std::all_of(results.begin(), results.end(), [&](ValueId v) {
    const MemoryType memory = buffers[v.index].memory;
    return memory == MemoryType::kGlobal || (memory == MemoryType::kShared && is_block(p));
  });
}

int64_t KernelPlan::block_workspaces() const {
  size_t lists = 0;
  for (const auto& [op, exchange] : exchanges)
    if (std::ranges::any_of(exchange.threads, is_block) && exchange.lanes == 0)
      lists = std::max(lists, (*graph)[op].results.size());
  return static_cast<int64_t>(lists);
}

ClusterPlaces KernelPlan::cluster_places() const {
  ClusterPlaces places;
  std::set<ParallelType> groups;
  for (const auto& [op, exchange] : exchanges) {
    if (!exchange.is_cluster) continue;
    places.lists = std::max(places.lists, static_cast<int64_t>((*graph)[op].results.size()));
    places.elements = std::max({places.elements, accumulators.at(op).elements, int64_t{1}});
    for (ParallelType p : used_threads)
      if (is_block(p) && std::ranges::count(exchange.threads, p) == 0) groups.insert(p);
  }
  places.groups.assign(groups.begin(), groups.end());
  return places;
}

OpId KernelPlan::last_block_of(OpId op) const {
  for (const auto& [reduction, e] : exchanges)
    if (e.is_last && (reduction == op || std::ranges::count(e.readers, op) > 0)) return reduction;
  return {};
}

bool KernelPlan::is_promoted(DomainId domain) const {
  if (nest_plan.promoted.empty()) return false;
  const auto from = leaves(*graph, domain);
  return std::any_of(from.begin(), from.end(), [&](DomainId d) { return nest_plan.promoted.contains(d); });
}

std::optional<ScalarParameter> parameter_of(const Graph& g, int symbol) {
  if (symbol < kStrideSymbols) return ScalarParameter{ValueId(static_cast<uint32_t>(symbol)), {}, 0};
  const auto domain = static_cast<uint32_t>(symbol - kStrideSymbols);
  if (domain >= g.domains.size()) return std::nullopt;
  const ValueId tensor = g[g[DomainId(domain)].tensor].value;
  const auto order = allocation_of(g, g.tensor_of(tensor));
  return ScalarParameter{{}, tensor, static_cast<uint32_t>(position_in(order, DomainId(domain)))};
}

KernelPlan plan_refusable(const Graph& scheduled, const PlanOptions& options,
                          std::shared_ptr<KernelPlan::Views> views) {
  for (const IterDomain& d : scheduled.domains)
    if (d.iter_type == IterType::kSymbolic)
      throw Error(ErrorCode::kNotConcretized, "this axis is not resolved; concretize the program for its inputs first",
                  (d.tensor ? "%" + scheduled[scheduled[d.tensor].value].name + "." : "") + d.name);
  for (OpId id : scheduled[Graph::body()].ops)
    if (const Op& op = scheduled[id]; is_library(scheduled, op))
      throw Error(ErrorCode::kNotInKernel,
                  std::string(row_of(op.kind).text) +
                      " has no kernel, ATen alone computes it; assign it to a segment of its own, by aten",
                  "%" + scheduled[op.results[0]].name);
  KernelPlan plan(scheduled, options);
  if (views) plan.views = std::move(views);
  for (const auto stage : {plan_threads, plan_buffers, plan_empty_threads, plan_replicas, check_sharing, plan_loops,
                           plan_shared, plan_syncs, plan_cascades, plan_storage, plan_exchanges, check_clusters})
    plan = stage(std::move(plan));
  return plan;
}

KernelPlan plan_kernel(const Graph& scheduled, const PlanOptions& options) {
  return plan_statements(plan_refusable(scheduled, options));
}

}  // namespace fusebox
