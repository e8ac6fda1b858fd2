#include "passes/schedule/vector_width.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/vector_copy.h"

namespace fusebox {
namespace {

// Whether the classes show what the launch will check of vectors: divisors of sizes and strides, aligned addresses.
template <class Needs>
bool shows(const ScheduleView& view, const KnownDivisors& known, const Needs& needs) {
  const bool any_divisor = view.defects.has(Defect::kVectorUndivided);
  const bool any_address = view.defects.has(Defect::kVectorUnaligned);
  return std::ranges::all_of(needs.divisibilities,
                             [&](const Divisibility& d) { return any_divisor || known.holds(d); }) &&
         std::ranges::all_of(needs.alignments,
                             [&](const auto& a) { return any_address || known.is_aligned(a.first, a.second); });
}

}  // namespace

std::vector<int64_t> vector_widths(const ScheduleView& view, const Graph& scheduled,
                                   std::span<const std::string> copies) {
  std::vector<int64_t> widths(copies.size(), 1);
  if (copies.empty()) return widths;
  KernelPlan plan(scheduled);
  // Whether loops may be shared is asked when the kernel plan of the whole schedule is made.
  for (const auto stage : {plan_threads, plan_buffers, plan_empty_threads, plan_replicas, plan_loops})
    plan = stage(std::move(plan));
  const KnownDivisors known(view, scheduled);
  for (size_t i = 0; i < copies.size(); ++i) {
    const ValueId v = *find_value(scheduled, copies[i]);
    const auto& loop = loop_of(scheduled.tensor_of(v));
    if (loop.empty()) continue;
    StatementView statement(plan, scheduled[v].def);
    const auto extent = statement.algebra.constant_value(statement.own.extent(loop.back()));
    if (!extent || *extent < 2) continue;
    int64_t width = std::min<int64_t>(power_of_two_in(*extent, kVectorBytes),
                                      kVectorBytes / std::min<int64_t>(size_bytes(scheduled[v].dtype), kVectorBytes));
    for (; width > 1; width /= 2)
      if (const auto needs = needs_of_width(plan, statement, width); needs && shows(view, known, *needs)) break;
    widths[i] = width;
  }
  return widths;
}

bool shows_vectors(const ScheduleView& view, const KernelPlan& plan) {
  return shows(view, KnownDivisors(view, *plan.graph), plan);
}

}  // namespace fusebox
