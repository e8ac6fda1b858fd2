// Gives long serial sums of floats, and welfords, partial sums, so that the error does not grow with the number of
// elements. The loop that makes a sum long runs in strips. After a strip the accumulator is added to a partial sum and
// set back.
//
// A few strips are added one after another. The partial sum of many strips keeps the rounding errors of its additions
// beside it, which D. E. Knuth's two-sum gives exactly ("The Art of Computer Programming" 2, §4.2.2), and they are added
// in the end (T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26, 2005: sum2). An
// element then goes through the additions of its strip and two more, however many strips there are.
//
//   for first = 0 … n step 32
//     for i = first … min(first + 32, n): acc += x[i]
//     sum, rounding = two_sum(sum, acc); error += rounding; acc = 0
//   y = sum + error
//
// A welford has no such error term. It gets a cascade: partial sums of partial sums. After 16 strips a partial sum is
// added to the next one, and so on. A number takes part in at most 16 combinations at each level. Only the last level,
// which takes the rest, may combine more. N. J. Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput.
// 14, 1993, §3 bounds such a tree.
//
//   for first = 0 … n step 16
//     for i = first … min(first + 16, n): acc += x[i]
//     acc1 += acc; acc = 0
//     if first / 16 % 16 == 15: acc2 += acc1; acc1 = 0
//   y = acc1 + acc2
//
// A product takes one rounding for each factor in every order, so a product gets no partial sums.
#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

constexpr int64_t kSumStrip = 32;      // elements of a strip of a sum
constexpr int64_t kFewStrips = 16;     // that are added one after another
constexpr int64_t kLargest = 1 << 15;  // elements in a partial sum above which no further level is added

// The number of iterations in a strip of a loop, at most `most`. A loop of constant extent gets a divisor of it, if
// there is one above most / 2, so that every strip is full.
int64_t strip_of(std::optional<int64_t> extent, int64_t most) {
  for (int64_t width = most; extent && width > most / 2; --width)
    if (*extent % width == 0) return width;
  return most;
}

int64_t strip_length(const Op& op) { return op.kind == OpKind::kSum ? kSumStrip : kCascadeStrip; }

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
    // Inner loops that together fit into a strip are summed without strips.
    int64_t inside = 1;
    for (size_t i = loop.size(); i-- > 0;) {
      if (!is_serial(nest, loop, i)) continue;
      const auto extent = most(algebra, view.own.extent(loop[i]));
      if (extent && *extent <= strip_length(op) / inside) {
        inside *= std::max<int64_t>(*extent, 1);
        continue;
      }
      plan.cascades[nest.op] = {i, inside, 1, false};
      const int64_t width = strip_of(algebra.constant_value(view.own.extent(loop[i])), strip_length(op) / inside);
      auto& strip = plan.strips.try_emplace(nest.path[i], width).first->second;
      strip = std::min(strip, width);
      break;
    }
  }
  // Ops that share a loop run it in the smallest of their strips.
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
    if (g[id].kind == OpKind::kSum) {
      cascade.is_compensated = !(strips_at_most && *strips_at_most <= kFewStrips);
      continue;
    }
    int64_t held = strip * cascade.inside;  // elements in a partial sum that the last level adds
    for (int64_t reach = kCascadeStrip; held < kLargest && !(strips_at_most && *strips_at_most <= reach);
         reach *= kCascadeStrip) {
      held *= kCascadeStrip;
      ++cascade.levels;
    }
  }
  return plan;
}

}  // namespace fusebox
