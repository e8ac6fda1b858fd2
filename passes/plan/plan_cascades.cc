// Serial sums of floats, and welfords: a cascade, so that the error grows with the logarithm of the number of elements.
// N. J. Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993, §3 bounds such a tree.
//
// The loop that makes a sum long runs in strips. After a strip the accumulator is added to a first partial sum and set
// back; after 16 strips that partial sum is added to the next one, and so on. No number takes part in more than 16
// additions at each level, but for the last level, which takes what is left.
//
//   for first = 0 … n step 16
//     for i = first … min(first + 16, n): acc += x[i]
//     acc1 += acc; acc = 0
//     if first / 16 % 16 == 15: acc2 += acc1; acc1 = 0
//   y = acc1 + acc2
//
// A product takes one rounding for each factor in every order, so it has no use for this.
#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

constexpr int64_t kLargest = 1 << 15;  // the last level takes partial sums of so many elements, or more

// Of a loop: at most so many iterations. Of a known count a divisor where there is one, so that each strip has a count
// that is known.
int64_t strip_of(std::optional<int64_t> extent, int64_t most) {
  for (int64_t width = most; extent && width > most / 2; --width)
    if (*extent % width == 0) return width;
  return most;
}

bool is_ordered_sum(const Graph& g, const Op& op) {
  if (op.kind != OpKind::kSum && op.kind != OpKind::kWelford) return false;
  const Dtype d = accumulator_dtype(g[op.results[0]].dtype);
  return is_floating(d) || is_complex(d);
}

}  // namespace

KernelPlan plan_cascades(KernelPlan plan) {
  const Graph& g = *plan.graph;
  const auto most = [](IndexAlgebra& algebra, Form extent) { return algebra.int_bounds(extent).upper; };
  const auto is_serial = [&](const Nest& nest, const std::vector<DomainId>& loop, size_t i) {
    return is_reduction(g, loop[i]) && is_real_loop(plan.nest_plan.nodes[nest.path[i]].parallel);
  };
  if (plan.defects().has(Defect::kReductionSequential)) return plan;
  for (const Nest& nest : plan.nest_plan.nests) {
    const Op& op = g[nest.op];
    if (!is_ordered_sum(g, op)) continue;
    const auto& loop = loop_of(g.tensor_of(op.results[0]));
    StatementView view(plan, nest.op);
    IndexAlgebra& algebra = view.algebra;
    // What the loops inside add up is no more than a strip.
    int64_t inside = 1;
    for (size_t i = loop.size(); i-- > 0;) {
      if (!is_serial(nest, loop, i)) continue;
      const auto extent = most(algebra, view.own.extent(loop[i]));
      if (extent && *extent <= kCascadeStrip / inside) {
        inside *= std::max<int64_t>(*extent, 1);
        continue;
      }
      plan.cascades[nest.op] = {i, inside, 1};
      const int64_t width = strip_of(algebra.constant_value(view.own.extent(loop[i])), kCascadeStrip / inside);
      auto& strip = plan.strips.try_emplace(nest.path[i], width).first->second;
      strip = std::min(strip, width);
      break;
    }
  }
  // The smallest strip of a loop is that of all who share it.
  for (auto& [id, cascade] : plan.cascades) {
    const Nest& nest = plan.nest_of(id);
    const auto& loop = loop_of(g.tensor_of(g[id].results[0]));
    StatementView view(plan, id);
    IndexAlgebra& algebra = view.algebra;
    const int64_t strip = plan.strips.at(nest.path[cascade.position]);
    Form count = algebra.ceil_div(view.own.extent(loop[cascade.position]), algebra.constant(strip));
    for (size_t i = 0; i < cascade.position; ++i)
      if (is_serial(nest, loop, i)) count = algebra.mul(count, view.own.extent(loop[i]));
    const auto strips_at_most = most(algebra, count);
    int64_t held = strip * cascade.inside;  // elements in what the last level takes at once
    for (int64_t reach = kCascadeStrip; held < kLargest && !(strips_at_most && *strips_at_most <= reach);
         reach *= kCascadeStrip) {
      held *= kCascadeStrip;
      ++cascade.levels;
    }
  }
  return plan;
}

}  // namespace fusebox
