#include "passes/schedule/vector_width.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/vector_copy.h"

namespace fusebox {
namespace {

// Which divisors the classes show.
class KnownDivisors {
 public:
  KnownDivisors(const ScheduleView& view, const Graph& scheduled) : view_(view), g_(scheduled) {}

  // Whether the divisor divides the product.
  bool holds(const Divisibility& d) const {
    if (view_.defects.has(Defect::kVectorUndivided)) return true;
    int64_t product = 1;
    for (const ScalarParameter& p : d.product) product = std::min<int64_t>(product * divisor(p), d.divisor);
    return product % d.divisor == 0;
  }

  bool is_aligned(ValueId storage, int64_t bytes) const {
    if (view_.defects.has(Defect::kVectorUnaligned)) return true;
    const MemoryClass* memory = memory_of(storage);
    return bytes <= (memory ? *memory : MemoryClass{}).align;
  }

 private:
  const MemoryClass* memory_of(ValueId tensor) const {
    const auto it = view_.memory.find(g_[tensor].name);
    return it == view_.memory.end() ? nullptr : &it->second;
  }

  // Steps add values behind those of the fusion, so the classes of the fusion's scalars are found by their ids.
  int64_t divisor(const ScalarParameter& p) const {
    if (p.scalar) return view_.sizes.of(p.scalar).divisor;
    const auto order = allocation_of(g_, g_.tensor_of(p.stride_of));
    if (p.axis >= order.size()) return 1;
    const MemoryClass* memory = memory_of(p.stride_of);
    if (!memory || memory->stride_divisors.empty()) {
      // The tensor is contiguous: its stride is the product of the extents behind the axis.
      int64_t product = 1;
      for (size_t i = p.axis + 1; i < order.size(); ++i)
        product = std::min<int64_t>(product * view_.sizes.of(order[i]).divisor, kVectorBytes);
      return product;
    }
    const auto axes = logical_without_reductions(g_, g_.tensor_of(p.stride_of));
    const size_t axis = position_in(axes, order[p.axis]);
    return axis < memory->stride_divisors.size() ? memory->stride_divisors[axis] : 1;
  }

  const ScheduleView& view_;
  const Graph& g_;
};

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
  const auto is_shown = [&](const VectorNeeds& needs) {
    return std::ranges::all_of(needs.divisibilities, [&](const Divisibility& d) { return known.holds(d); }) &&
           std::ranges::all_of(needs.alignments, [&](const auto& a) { return known.is_aligned(a.first, a.second); });
  };
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
      if (const auto needs = needs_of_width(plan, statement, width); needs && is_shown(*needs)) break;
    widths[i] = width;
  }
  return widths;
}

bool shows_vectors(const ScheduleView& view, const KernelPlan& plan) {
  const KnownDivisors known(view, *plan.graph);
  return std::ranges::all_of(plan.divisibilities, [&](const Divisibility& d) { return known.holds(d); }) &&
         std::ranges::all_of(plan.alignments, [&](const auto& a) { return known.is_aligned(a.first, a.second); });
}

}  // namespace fusebox
