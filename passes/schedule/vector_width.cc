#include "passes/schedule/vector_width.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/nest/coverage.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/vector_copy.h"
#include "passes/schedule/schedule_memo.h"

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

bool overwrites(const Graph& g) {
  return std::ranges::any_of(outputs(g), [](const OutputRef& out) { return static_cast<bool>(out.alias); });
}

// The kernel plan as far as the views of its copies need it, and what refuses it so far. The extents of the launch cost
// most and concern no vector; only the order of reads and overwriting stores asks for them.
KernelPlan plan_of_copies(const ScheduleView& view, const Graph& scheduled) {
  if (view.memo && view.memo->work) ++view.memo->work->kernel_plans;
  KernelPlan plan(scheduled);
  if (overwrites(scheduled)) {
    plan = plan_empty_threads(plan_buffers(plan_threads(std::move(plan))));
  } else {
    check_coverage(scheduled, plan.nest_plan);
    for (const LoopNode& node : plan.nest_plan.nodes)
      if (is_thread(node.parallel)) plan.used_threads.insert(node.parallel);
    plan = plan_buffers(std::move(plan));
  }
  // Whether loops may be shared is asked when the kernel plan of the whole schedule is made.
  return plan_loops(plan_replicas(std::move(plan)));
}

}  // namespace

VectorWidths::VectorWidths(const ScheduleView& view, const Graph& scheduled)
    : view_(view), scheduled_(scheduled), plan_(plan_of_copies(view, scheduled)) {}

// Without overwriting stores no stage of the plan looks at facts, only the views do.
void VectorWidths::learn_facts() {
  if (overwrites(scheduled_)) {
    plan_ = plan_of_copies(view_, scheduled_);
    return;
  }
  plan_.buffers.resize(scheduled_.values.size());
  plan_.classes = ExtentClasses(scheduled_, plan_.defects());
  plan_.facts = stated_facts(scheduled_);
  plan_.views = std::make_shared<KernelPlan::Views>(scheduled_.ops.size());
}

std::vector<int64_t> VectorWidths::of(std::span<const std::string> copies) const {
  std::vector<int64_t> widths(copies.size(), 1);
  const KnownDivisors known(view_, scheduled_);
  for (size_t i = 0; i < copies.size(); ++i) {
    const ValueId v = *find_value(scheduled_, copies[i]);
    const auto& loop = loop_of(scheduled_.tensor_of(v));
    if (loop.empty()) continue;
    StatementView statement(plan_, scheduled_[v].def);
    const auto extent = statement.algebra.constant_value(statement.own.extent(loop.back()));
    if (!extent || *extent < 2) continue;
    int64_t width = std::min<int64_t>(power_of_two_in(*extent, kVectorBytes),
                                      kVectorBytes / std::min<int64_t>(size_bytes(scheduled_[v].dtype), kVectorBytes));
    const CopyNeeds copy(plan_, statement);
    const auto is_shown = [&](int64_t w) {
      const auto needs = copy.of_width(w);
      return needs && shows(view_, known, *needs);
    };
    // A vector of two needs no more than a wider one, so most copies that cannot be wide are asked for once.
    if (width > 2 && !is_shown(2)) width = 1;
    while (width > 1 && !is_shown(width)) width /= 2;
    widths[i] = width;
  }
  return widths;
}

bool shows_vectors(const ScheduleView& view, const KernelPlan& plan) {
  return shows(view, KnownDivisors(view, *plan.graph), plan);
}

}  // namespace fusebox
