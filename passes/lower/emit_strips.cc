// Emits loops in strips, for serial sums with partial sums (passes/plan/plan_cascades.cc).
#include <algorithm>

#include "ir/domain/domain.h"
#include "passes/lower/kernel_emitter.h"
#include "passes/plan/plan_queries.h"

namespace fusebox {

void KernelEmitter::emit_strips(uint32_t node, ValueId end, bool unroll) {
  const int64_t width = plan_.strips.at(node);
  const auto emit_strip = [&](ValueId first, ValueId stop) {
    const auto from = kernel_.constant_of(first), to = kernel_.constant_of(stop);
    const bool is_one = width == 1 || (from && to && *to - *from == 1);
    node_index_[node] = is_one ? first : kernel_.begin_for(first, stop, kernel_.index(1), unroll);
    emit_children(node);
    if (!is_one) kernel_.end();
    end_strip(node, first);
  };
  // The rest of an unrolled loop becomes a strip of its own behind the loop, so that every strip has a known count. A short
  // loop may be unrolled later, where it walks over registers (passes/kernel/unroll_local.h).
  constexpr int64_t kShort = 64;
  const auto count = kernel_.constant_of(end);
  const int64_t rest = count ? *count % width : 0;
  const bool is_apart = rest > 0 && (unroll || *count <= kShort);
  const ValueId whole = is_apart ? kernel_.index(*count - rest) : end;
  const auto outer = settled_;
  if (is_apart) settle_below(node, node, *count - rest);
  if (kernel_.constant_of(whole).value_or(INT64_MAX) <= width) {
    emit_strip(kernel_.index(0), whole);
  } else {
    const ValueId first = kernel_.begin_for(kernel_.index(0), whole, kernel_.index(width), unroll);
    const ValueId behind = kernel_.add(first, kernel_.index(defects().has(Defect::kStripLonger) ? width + 1 : width));
    emit_strip(first, is_apart || (count && rest == 0) ? behind : kernel_.minimum(behind, end));
    kernel_.end();
  }
  settled_ = outer;
  if (is_apart && !defects().has(Defect::kStripRestDropped)) emit_strip(whole, end);
}

// Settles the checks of the statements in `node` that hold where the loop at `strips` is below `end`.
void KernelEmitter::settle_below(uint32_t node, uint32_t strips, int64_t end) {
  const auto& children = plan_.tree.children[node];
  for (size_t at = 0; at < children.size(); ++at) {
    const TreeChild& child = children[at];
    // What is loaded for later iterations is checked for these.
    if (node == strips && is_ahead(node, at)) continue;
    if (child.is_node) {
      settle_below(child.index, strips, end);
      continue;
    }
    Site site = site_of(child.index);
    IndexAlgebra& algebra = site.view.algebra;
    // A thread that is launched where its loop has no iteration may rely on any check.
    const auto is_launched_empty = [&](uint32_t n) {
      return n != LoopNode::kNoNode && plan_.launched_empty.contains(plan_.parallel_of(n));
    };
    if (std::ranges::any_of(site.view.path, is_launched_empty)) continue;
    for (size_t i = 0; i < site.plan.conditions.size(); ++i) {
      const Condition& c = site.plan.conditions[i];
      const auto rise = rise_along(algebra, c, strips);
      if (rise && holds_up_to(algebra, c, *rise, end - 1)) settled_[child.index].insert(i);
    }
  }
}

void KernelEmitter::add_partial(OpId id, size_t level, ValueId at) {
  const Op& op = g_[id];
  const auto& from = partial(id, level);
  const auto& to = partial(id, level + 1);
  std::vector<ValueId> held, more;
  for (ValueId buffer : to) held.push_back(kernel_.load(buffer, at));
  for (ValueId buffer : from) more.push_back(kernel_.load(buffer, at));
  const auto sums = combine(op, held, more);
  for (size_t i = 0; i < to.size(); ++i) {
    kernel_.store(to[i], at, sums[i]);
    if (!defects().has(Defect::kFoldNotReset))
      kernel_.store(from[i], at, kernel_.constant(kernel_.graph()[from[i]].dtype, {}));
  }
}

void KernelEmitter::add_compensated(OpId id, ValueId at) {
  const ValueId part = accumulators_.at(id)[0], sum = partial(id, 1)[0], error = partial(id, 2)[0];
  const Dtype dtype = kernel_.graph()[sum].dtype;
  const auto add = [&](ValueId x, ValueId y) { return kernel_.op(OpKind::kAdd, {x, y}, dtype); };
  const auto sub = [&](ValueId x, ValueId y) { return kernel_.op(OpKind::kSub, {x, y}, dtype); };
  const ValueId a = kernel_.load(sum, at), b = kernel_.load(part, at), total = add(a, b), taken = sub(total, a);
  const ValueId rounding = add(sub(a, sub(total, taken)), sub(b, taken));
  kernel_.store(sum, at, total);
  kernel_.store(error, at, add(kernel_.load(error, at), rounding));
  if (!defects().has(Defect::kFoldNotReset)) kernel_.store(part, at, kernel_.constant(dtype, {}));
}

ValueId KernelEmitter::compensated_total(OpId id, ValueId at) {
  const ValueId sum = kernel_.load(partial(id, 1)[0], at), error = kernel_.load(partial(id, 2)[0], at);
  if (defects().has(Defect::kPartialLost)) return error;
  const Dtype dtype = kernel_.graph()[sum].dtype;
  // An infinite sum has no error term: infinity minus infinity is NaN.
  const ValueId is_none = kernel_.op(OpKind::kIsnan, {error}, Dtype::kBool);
  return kernel_.op(OpKind::kWhere, {is_none, sum, kernel_.op(OpKind::kAdd, {sum, error}, dtype)}, dtype);
}

void KernelEmitter::end_strip(uint32_t node, ValueId first) {
  for (const auto& [id, cascade] : plan_.cascades) {
    const Nest& nest = plan_.nest_of(id);
    if (nest.path[cascade.position] != node) continue;
    const auto& loop = plan_.loops_of(id);
    StatementView view(plan_, id);
    IndexAlgebra& algebra = view.algebra;
    ValueId number = kernel_.index(0);  // of the strip
    for (size_t i = 0; i <= cascade.position && cascade.levels > 1; ++i) {
      if (!is_reduction(g_, loop[i]) || !is_real_loop(plan_.parallel_of(nest.path[i]))) continue;
      const ValueId strip = kernel_.index(i == cascade.position ? plan_.strips.at(node) : 1);
      if (kernel_.constant_of(number) != 0)
        number = kernel_.mul(number, kernel_.ceil_div(emit_form(algebra, view.own.extent(loop[i])), strip));
      const ValueId at = i == cascade.position ? first : node_index_[nest.path[i]];
      number = kernel_.add(number, kernel_.floor_div(at, strip, true));
    }
    // Iteration loops inside this loop have finished, so the places of their sums are consecutive.
    Form outside = algebra.constant(0), inside = algebra.constant(1);
    for (size_t i : plan_.accumulators.at(id).places) {
      outside = algebra.mul(outside, view.own.extent(loop[i]));
      if (i < cascade.position)
        outside = algebra.add(outside, view.own.value(loop[i]));
      else
        inside = algebra.mul(inside, view.own.extent(loop[i]));
    }
    const ValueId begin = emit_form(algebra, outside), count = emit_form(algebra, inside);
    const bool is_one = kernel_.constant_of(count) == 1;
    const ValueId at =
        is_one ? begin : kernel_.add(begin, kernel_.begin_for(kernel_.index(0), count, kernel_.index(1), false));
    if (cascade.is_compensated)
      add_compensated(id, at);
    else
      add_partial(id, 0, at);
    int64_t group = 1;
    for (int level = 1; level < cascade.levels; ++level) {
      group *= kCascadeStrip;
      kernel_.begin_if(kernel_.compare(OpKind::kEq, kernel_.floor_mod(number, kernel_.index(group), true),
                                       kernel_.index(group - 1)));
      add_partial(id, static_cast<size_t>(level), at);
    }
    for (int level = 1; level < cascade.levels; ++level) kernel_.end();
    if (!is_one) kernel_.end();
  }
}

}  // namespace fusebox
