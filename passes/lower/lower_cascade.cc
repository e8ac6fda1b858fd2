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
#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

constexpr int64_t kStrip = 16;         // elements, and sums of a level
constexpr int64_t kLargest = 1 << 15;  // the last level takes partial sums of so many elements, or more

// Of a loop: at most so many iterations. Of a known count a divisor where there is one, so that each strip has a count
// that is known.
int64_t strip_of(std::optional<int64_t> extent, int64_t most) {
  for (int64_t width = most; extent && width > most / 2; --width)
    if (*extent % width == 0) return width;
  return most;
}

}  // namespace

bool Lowering::is_ordered_sum(const Op& op) const {
  if (op.kind != OpKind::kSum && op.kind != OpKind::kWelford) return false;
  const Dtype d = accumulator_dtype(g[op.results[0]].dtype);
  return is_floating(d) || is_complex(d);
}

void Lowering::plan_cascades() {
  const auto most = [&](Form extent) { return algebra.int_bounds(extent).upper; };
  const auto is_serial = [&](const Nest& nest, const std::vector<DomainId>& loop, size_t i) {
    return is_reduction(g, loop[i]) && is_real_loop(plan.nodes[nest.path[i]].parallel);
  };
  if (options.defects.has(Defect::kReductionSequential)) return;
  for (const Nest& nest : plan.nests) {
    const Op& op = g[nest.op];
    if (!is_ordered_sum(op)) continue;
    const auto& loop = loop_of(g.tensor_of(op.results[0]));
    const Statement s{nest.op, StatementKind::kMain, nest.path};
    OpView view(*this, s);
    // What the loops inside add up is no more than a strip.
    int64_t inside = 1;
    for (size_t i = loop.size(); i-- > 0;) {
      if (!is_serial(nest, loop, i)) continue;
      const auto extent = most(view.own.extent(loop[i]));
      if (extent && *extent <= kStrip / inside) {
        inside *= std::max<int64_t>(*extent, 1);
        continue;
      }
      cascades[nest.op] = {i, inside, 1, {}};
      const int64_t width = strip_of(algebra.constant_value(view.own.extent(loop[i])), kStrip / inside);
      auto& strip = strips.try_emplace(nest.path[i], width).first->second;
      strip = std::min(strip, width);
      break;
    }
  }
  // The smallest strip of a loop is that of all who share it.
  for (auto& [id, cascade] : cascades) {
    const Nest& nest = plan.of(id);
    const auto& loop = loop_of(g.tensor_of(g[id].results[0]));
    const Statement s{id, StatementKind::kMain, nest.path};
    OpView view(*this, s);
    const int64_t strip = strips.at(nest.path[cascade.position]);
    Form count = algebra.ceil_div(view.own.extent(loop[cascade.position]), algebra.constant(strip));
    for (size_t i = 0; i < cascade.position; ++i)
      if (is_serial(nest, loop, i)) count = algebra.mul(count, view.own.extent(loop[i]));
    const auto strips_at_most = most(count);
    int64_t held = strip * cascade.inside;  // elements in what the last level takes at once
    for (int64_t reach = kStrip; held < kLargest && !(strips_at_most && *strips_at_most <= reach); reach *= kStrip) {
      held *= kStrip;
      ++cascade.levels;
    }
  }
}

void Lowering::emit_strips(uint32_t node, ValueId end, bool unroll) {
  const int64_t width = strips.at(node);
  const auto emit_strip = [&](ValueId first, ValueId stop) {
    const auto from = kernel.constant_of(first), to = kernel.constant_of(stop);
    const bool is_one = width == 1 || (from && to && *to - *from == 1);
    node_index[node] = is_one ? first : kernel.begin_for(first, stop, kernel.index(1), unroll);
    emit_children(node);
    if (!is_one) kernel.end();
    end_strip(node, first);
  };
  // What is left over of an unrolled loop is a strip beside the others, so that each has a count that is known.
  const auto count = kernel.constant_of(end);
  const int64_t rest = count ? *count % width : 0;
  const bool is_apart = rest > 0 && unroll;
  const ValueId whole = is_apart ? kernel.index(*count - rest) : end;
  if (kernel.constant_of(whole).value_or(INT64_MAX) <= width) {
    emit_strip(kernel.index(0), whole);
  } else {
    const ValueId first = kernel.begin_for(kernel.index(0), whole, kernel.index(width), unroll);
    const ValueId behind =
        kernel.add(first, kernel.index(options.defects.has(Defect::kStripLonger) ? width + 1 : width));
    emit_strip(first, is_apart || (count && rest == 0) ? behind : kernel.minimum(behind, end));
    kernel.end();
  }
  if (is_apart && !options.defects.has(Defect::kStripRestDropped)) emit_strip(whole, end);
}

void Lowering::add_partial(OpId id, size_t level, ValueId at) {
  const Op& op = g[id];
  const auto& from = partial(id, level);
  const auto& to = partial(id, level + 1);
  std::vector<ValueId> held, more;
  for (ValueId buffer : to) held.push_back(kernel.load(buffer, at));
  for (ValueId buffer : from) more.push_back(kernel.load(buffer, at));
  const auto sums = combine(op, held, more);
  for (size_t i = 0; i < to.size(); ++i) {
    kernel.store(to[i], at, sums[i]);
    if (!options.defects.has(Defect::kFoldNotReset))
      kernel.store(from[i], at, kernel.constant(kernel.graph()[from[i]].dtype, {}));
  }
}

void Lowering::end_strip(uint32_t node, ValueId first) {
  for (const auto& [id, cascade] : cascades) {
    const Nest& nest = plan.of(id);
    if (nest.path[cascade.position] != node) continue;
    const auto& loop = loop_of(g.tensor_of(g[id].results[0]));
    const Statement s{id, StatementKind::kMain, nest.path};
    OpView view(*this, s);
    ValueId number = kernel.index(0);  // of the strip
    for (size_t i = 0; i <= cascade.position && cascade.levels > 1; ++i) {
      if (!is_reduction(g, loop[i]) || !is_real_loop(plan.nodes[nest.path[i]].parallel)) continue;
      const ValueId strip = kernel.index(i == cascade.position ? strips.at(node) : 1);
      if (kernel.constant_of(number) != 0)
        number = kernel.mul(number, kernel.ceil_div(emit_form(view.own.extent(loop[i])), strip));
      const ValueId at = i == cascade.position ? first : node_index[nest.path[i]];
      number = kernel.add(number, kernel.floor_div(at, strip, true));
    }
    // Iteration loops inside this one have all run: their places follow one another.
    Form outside = algebra.constant(0), inside = algebra.constant(1);
    for (size_t i : accumulator_places(nest)) {
      outside = algebra.mul(outside, view.own.extent(loop[i]));
      if (i < cascade.position)
        outside = algebra.add(outside, view.own.value(loop[i]));
      else
        inside = algebra.mul(inside, view.own.extent(loop[i]));
    }
    const ValueId begin = emit_form(outside), count = emit_form(inside);
    const bool is_one = kernel.constant_of(count) == 1;
    const ValueId at =
        is_one ? begin : kernel.add(begin, kernel.begin_for(kernel.index(0), count, kernel.index(1), false));
    add_partial(id, 0, at);
    int64_t group = 1;
    for (int level = 1; level < cascade.levels; ++level) {
      group *= kStrip;
      kernel.begin_if(
          kernel.compare(OpKind::kEq, kernel.floor_mod(number, kernel.index(group), true), kernel.index(group - 1)));
      add_partial(id, static_cast<size_t>(level), at);
    }
    for (int level = 1; level < cascade.levels; ++level) kernel.end();
    if (!is_one) kernel.end();
  }
}

}  // namespace fusebox::lowering
