// two_pass_moments: a welford becomes a sum, a division and a sum of squared distances. Where a row stays in registers,
// two short loops over it are faster than one whose every step waits for the mean of the step before.
//
//   // %avg, %squares, %n = welford %x over [1]   becomes
//   // %s = sum %x over [1]; %avg = %s / max(size, 1); %d = sub %x, %avg; %squares = sum (%d · %d) over [1]
//
// The sum leaves the range of the dtype where the elements are near the largest number; the mean is an infinity then, and
// the reference's bounds allow that from a quarter of the range on, for the sum of magnitudes.
//
// A count that is read becomes a `full` of the number of elements. Without elements all results are 0, as a welford's are.
// The results are within the bounds of a welford's, whose squares are off by n times the square of the mean's own error at
// most (T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for Computing the Sample Variance", 1983). A welford of
// narrow floats stays, because its mean would be rounded before the distances are taken.
#include <algorithm>
#include <utility>

#include "ir/build/builder.h"
#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/scalar/scalar.h"
#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {
namespace {

struct Moments {
  ValueId mean, squares;
};

// The number of elements that the op reduces, and the same but at least 1.
struct Count {
  ValueId elements, divisor;
};

// Makes them before the op, where no later op that computes the same is found.
Count count_before(Graph& g, OpId op, ValueId x, const Axes& axes) {
  const auto here = [&] { return scalar::Place::before_op(g, op); };
  const auto domains = logical_without_reductions(g, g.tensor_of(x));
  ValueId count = constant_index(g, 1);
  for (int64_t axis : axes)
    count = scalar::mul(g, here(), count, emit_size(g, here(), domains[named_axis(axis, domains.size())]));
  return {count, scalar::maximum(g, here(), count, constant_index(g, 1))};
}

// The shape of the tensor as its readers see it. What it takes is made before the op.
Shape shape_before(Graph& g, OpId op, ValueId v) {
  Shape shape;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(v)))
    shape.emplace_back(emit_size(g, scalar::Place::before_op(g, op), d));
  return shape;
}

// Appends the ops to the body.
Moments two_passes(Graph& g, ValueId x, const Axes& axes, ValueId count) {
  std::vector<bool> is_new(rank_of(g, x));
  for (int64_t axis : axes) is_new[named_axis(axis, is_new.size())] = true;
  const ValueId mean = truediv(g, sum(g, x, axes), count);
  const ValueId distance = sub(g, x, broadcast(g, mean, is_new));
  return {mean, sum(g, mul(g, distance, distance), axes)};
}

bool is_simple(const Graph& g, const Op& op) {
  if (op.kind != OpKind::kWelford) return false;
  for (size_t k = 1; k < op.operands.size(); ++k)
    if (op.operands[k]) return false;  // it merges sets
  const Dtype dtype = g[op.operands[0]].dtype;
  if ((dtype != Dtype::kFloat && dtype != Dtype::kDouble) || g[op.results[0]].dtype != dtype) return false;
  // An expanded axis is reduced over its expanded size, and distances need not have that size.
  for (DomainId d : logical_without_reductions(g, g.tensor_of(op.operands[0])))
    if (g[d].expanded) return false;
  return g.tensor_of(op.operands[0]).devices.empty() && !op.attrs.ints(AttrKey::kAxes).empty();
}

void split_welfords(Graph& g, Rewriter& r, const RewriteOptions&) {
  const std::vector<OpId> ops = g[Graph::body()].ops;
  const auto readers = uses(g);
  for (OpId id : ops) {
    const Op op = g[id];
    if (!is_simple(g, op)) continue;
    const auto is_read = [&](ValueId v) { return !readers[v.index].empty(); };
    if (std::ranges::any_of(op.results, [&](ValueId v) { return is_read(v) && !r.may_replace(v); })) continue;
    const std::vector<OpId> before = g[Graph::body()].ops;
    const auto given = op.attrs.ints(AttrKey::kAxes);
    const Axes axes(given.begin(), given.end());
    const ValueId x = r.operand(id, 0);
    const Count count = count_before(g, id, x, axes);
    const bool reads_count = is_read(op.results[2]);
    const Shape shape = reads_count ? shape_before(g, id, op.results[2]) : Shape();
    const size_t size = g[Graph::body()].ops.size();
    const Moments made = two_passes(g, x, axes, count.divisor);
    std::vector<std::pair<ValueId, ValueId>> pairs;
    if (is_read(op.results[0])) pairs.emplace_back(op.results[0], made.mean);
    if (is_read(op.results[1])) pairs.emplace_back(op.results[1], made.squares);
    if (reads_count) pairs.emplace_back(op.results[2], full(g, shape, count.elements, g[op.results[2]].dtype));
    auto& body = g[Graph::body()].ops;
    const bool fit = std::ranges::all_of(pairs, [&](const auto& p) { return r.fits(p.first, p.second); });
    if (!fit || pairs.empty()) {
      body = before;
      continue;
    }
    // The new ops stand where the welford stands.
    const auto at = std::ranges::find(body, id) - body.begin();
    std::rotate(body.begin() + at, body.begin() + static_cast<std::ptrdiff_t>(size), body.end());
    r.replace_together(pairs);
  }
}

}  // namespace

bool two_pass_moments(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, split_welfords); }

}  // namespace fusebox
