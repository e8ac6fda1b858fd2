#include "passes/automatic/cut_views.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/infer/is_library.h"
#include "ir/table/op.h"
#include "passes/plan/vector_copy.h"
#include "passes/segment/crossing_layouts.h"

namespace fusebox {
namespace {

bool makes_tensor(const Graph& g, OpId op) {
  return g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]);
}

// Finds the views of a fusion.
class Finder {
 public:
  Finder(const Graph& g, const Defects& defects)
      : g_(g), defects_(defects), readers_(uses(g)), meets_reduction_(g.values.size()) {
    for (const OutputRef& out : outputs(g)) {
      ++times_returned_[out.value];
      if (out.alias) kept_apart_.insert({out.value, out.alias});
    }
    const auto& ops = g[Graph::body()].ops;
    for (OpId op : ops)
      if (makes_tensor(g, op)) mark(op, meets_reduction_, g[op].operands, g[op].results);
    may_be_by_aten_.resize(g.values.size());
    for (OpId op : ops)
      if (makes_tensor(g, op) && (is_library(g, g[op]) || is_behind_aten(op)))
        for (ValueId v : g[op].results) may_be_by_aten_[v.index] = true;
    // What meets results of reductions stands beside them in a kernel.
    for (size_t i = ops.size(); i-- > 0;)
      if (makes_tensor(g, ops[i])) mark(ops[i], meets_reduction_, g[ops[i]].results, g[ops[i]].operands);
  }

  // By op: whether it is a reshape of what a kernel makes, without gaps and in the order of its axes, for other kernels.
  std::vector<bool> inner() const {
    std::vector<bool> result(g_.ops.size());
    for (OpId op : g_[Graph::body()].ops) {
      if (!makes_tensor(g_, op) || g_[op].kind != OpKind::kReshape) continue;
      const ValueId from = g_[op].operands[0], made = g_[op].results[0];
      if (!makes_tensor(g_, g_[from].def) || may_be_by_aten_[from.index] || kept_apart_.contains(from) ||
          times_returned_.contains(made) || is_read_by_aten(made))
        continue;
      const auto found = find_view(g_, op, defects_);
      const auto* view = std::get_if<View>(&found);
      result[op.index] = view && std::ranges::is_sorted(view->in_memory.order) &&
                         std::ranges::count(view->in_memory.contiguity, Contiguity::kFalse) == 0;
    }
    return result;
  }

  std::vector<OpId> run() {
    std::vector<OpId> result;
    for (OpId op : g_[Graph::body()].ops)
      if (makes_tensor(g_, op) && (is_view_of_input(op) || is_returned(op))) result.push_back(op);
    return result;
  }

 private:
  void mark(OpId op, std::vector<bool>& marks, const std::vector<ValueId>& from, const std::vector<ValueId>& to) const {
    const bool is_marked =
        demands(g_[op].kind, kReduction) || std::ranges::any_of(from, [&](ValueId v) { return v && marks[v.index]; });
    if (!is_marked) return;
    for (ValueId v : to)
      if (v) marks[v.index] = true;
  }

  // Whether the op may be one call with the product in front of it (ir/infer/product_call.h).
  bool is_behind_aten(OpId op) const {
    return demands(g_[op].kind, kPointwise) &&
           std::ranges::any_of(g_[op].operands, [&](ValueId v) { return v && may_be_by_aten_[v.index]; });
  }

  bool is_read_by_aten(ValueId v) const {
    return std::ranges::any_of(readers_[v.index], [&](OpId reader) {
      return makes_tensor(g_, reader) && may_be_by_aten_[g_[reader].results[0].index];
    });
  }

  bool is_read_again(ValueId v) const {
    return std::ranges::any_of(readers_[v.index], [&](OpId reader) { return makes_tensor(g_, reader); });
  }

  // What leads to a reduction, or meets what follows one, and is no output.
  bool is_view_of_input(OpId op) {
    const ValueId result = g_[op].results[0];
    const ValueId from = g_[op].operands.empty() ? ValueId() : g_[op].operands[0];
    if (!from || !g_.is_tensor(from) || times_returned_.contains(result) || !meets_reduction_[result.index] ||
        kept_apart_.contains(from) || is_read_by_aten(result))
      return false;
    const auto known = orders_.find(from);
    if (known == orders_.end() && g_[g_[from].def].kind != OpKind::kInput) return false;
    const auto found =
        known == orders_.end() ? find_view(g_, op, defects_) : find_view(g_, op, known->second, defects_);
    if (!std::holds_alternative<View>(found)) return false;
    orders_[result] = std::get<View>(found).in_memory;
    return true;
  }

  // An output, of which nothing but this op returns the operand. A kernel makes the operand: another reshape might be a view.
  bool is_returned(OpId op) const {
    const ValueId result = g_[op].results[0];
    // A kernel with the operand and with what reads the view would wait for itself.
    if (g_[op].kind != OpKind::kReshape || !times_returned_.contains(result) || kept_apart_.contains(result) ||
        is_read_again(result))
      return false;
    const ValueId from = g_[op].operands[0];
    const OpId def = g_[from].def;
    if (times_returned_.at(result) > 1 || times_returned_.contains(from) || !makes_tensor(g_, def) ||
        may_be_by_aten_[from.index] || g_[def].kind == OpKind::kReshape || orders_.contains(from) ||
        is_read_by_aten(from))
      return false;
    const auto is_other = [&](OpId reader) {
      return reader != op && makes_tensor(g_, reader) && times_returned_.contains(g_[reader].results[0]) &&
             g_[reader].kind == OpKind::kReshape;
    };
    if (std::ranges::any_of(readers_[from.index], is_other)) return false;
    const auto found = find_view(g_, op, defects_);
    return std::holds_alternative<View>(found) &&
           std::get<View>(found).in_memory.order == order_of(g_, g_.tensor_of(result));
  }

  const Graph& g_;
  const Defects& defects_;
  const std::vector<std::vector<OpId>> readers_;
  std::vector<bool> meets_reduction_, may_be_by_aten_;  // by value
  std::map<ValueId, int> times_returned_;
  std::set<ValueId> kept_apart_;           // outputs that overwrite inputs, and these inputs
  std::map<ValueId, MemoryOrder> orders_;  // of the views of inputs so far
};

int64_t capped(int64_t a, int64_t b) { return std::min(a * b, kMostDivisor); }

}  // namespace

std::vector<OpId> CutViews::find(const Graph& fusion, const Defects& defects) { return Finder(fusion, defects).run(); }

std::vector<OpId> CutViews::of(const Graph& fusion, const Segmentation& segmentation) {
  std::vector<OpId> result;
  for (const Segment& s : segmentation.segments)
    if (s.executor == SegmentExecutor::kView) result.push_back(fusion[*find_value(fusion, s.ops.at(0))].def);
  return result;
}

CutViews::CutViews(const Graph& fusion, std::vector<OpId> ops, const SizeClasses& sizes, const MemoryClasses& inputs,
                   const Defects& defects)
    : g_(fusion), defects_(defects), ops_(std::move(ops)), is_inner_(Finder(fusion, defects).inner()), memory_(inputs) {
  // What a view makes may have gaps.
  for (OpId op : ops_) is_inner_[op.index] = false;
  for (OpId op : g_[Graph::body()].ops)
    if (is_inner_[op.index] && std::ranges::count(ops_, g_[g_[op].operands[0]].def) > 0) is_inner_[op.index] = false;
  for (OpId op : ops_) {
    const ValueId from = g_[op].operands[0], result = g_[op].results[0];
    const auto known = crossings_.find(g_[from].name);
    if (known == crossings_.end() && g_[g_[from].def].kind != OpKind::kInput) continue;  // it is returned
    const Crossing crossing = known == crossings_.end() ? Crossing{g_[from].name, {}, {}, {}} : known->second;
    const auto found = find_view(g_, op, memory_order(g_, from, crossing), defects_);
    if (!std::holds_alternative<View>(found)) continue;
    const View& view = std::get<View>(found);
    Crossing& made = crossings_[g_[result].name];
    made.value = g_[result].name;
    lay_out(g_, view, made);
    memory_[made.value] = memory_of(view, op, sizes);
  }
}

MemoryClasses CutViews::memory_in(const Segmentation& segmentation) const {
  MemoryClasses memory = memory_;
  for (const Segment& s : segmentation.segments)
    for (const Crossing& c : s.outputs)
      if (const auto it = memory_.find(c.alias); it != memory_.end()) memory[c.value] = it->second;
  return memory;
}

void CutViews::add_to(Segmentation& segmentation, size_t first) const {
  for (OpId op : ops_) {
    Segment& s = segmentation.segments.emplace_back();
    s.name = std::to_string(first++);
    s.executor = SegmentExecutor::kView;
    s.ops = {g_[g_[op].results[0]].name};
  }
}

void CutViews::lay_out_inputs(Segment& segment) const {
  for (Crossing& in : segment.inputs)
    if (const auto it = crossings_.find(in.value); it != crossings_.end()) in = it->second;
}

CutPart CutViews::part(const Segment& segment, Graph fusion) const {
  const OpId op = g_[*find_value(g_, segment.ops[0])].def;
  CutPart part{.ops = {op}, .steps = {}, .executor = SegmentExecutor::kView, .heuristics = {}, .declined = {}};
  part.heuristics.scheduler = "view";
  part.planned = {segment, std::move(fusion)};
  return part;
}

MemoryClass CutViews::memory_of(const View& view, OpId op, const SizeClasses& sizes) const {
  const ValueId from = g_[op].operands[0];
  const auto known = memory_.find(g_[from].name);
  MemoryClass result = known == memory_.end() ? MemoryClass() : known->second;
  std::vector<int64_t> given = std::exchange(result.stride_divisors, {});
  if (given.empty()) {  // it is contiguous
    const auto axes = logical_without_reductions(g_, g_.tensor_of(from));
    given.assign(axes.size(), kMostDivisor);
    int64_t run = 1;
    const std::vector<int64_t> order = order_of(g_, g_.tensor_of(from));
    for (size_t k = order.size(); k-- > 0;) {
      const auto axis = static_cast<size_t>(order[k]);
      if (g_[axes[axis]].iter_type == IterType::kBroadcast) continue;
      given[axis] = run;
      run = capped(run, sizes.of(axes[axis]).divisor);
    }
  }
  const auto divisor_of = [&](const View::Stride& stride) {
    int64_t divisor = given.at(stride.axis);
    for (DomainId d : stride.times) divisor = capped(divisor, sizes.of(d).divisor);
    return divisor;
  };
  for (const auto& stride : view.strides) result.stride_divisors.push_back(stride ? divisor_of(*stride) : kMostDivisor);
  for (const View::Shift& shift : view.shifts) {
    // A negative number has no class of its own, but constants are known.
    const auto left = constant_integer(g_, shift.left);
    const int64_t steps = left ? power_of_two_in(*left, kMostDivisor) : divisor_of_negative(shift.left, sizes);
    const int64_t bytes = capped(divisor_of(shift.by), steps) * size_bytes(g_[from].dtype);
    if (!defects_.has(Defect::kViewAligned))
      result.align = std::min(result.align, power_of_two_in(bytes, result.align));
  }
  return result;
}

// Of 0 − n it is that of n.
int64_t CutViews::divisor_of_negative(ValueId v, const SizeClasses& sizes) const {
  const Op& op = g_[g_[v].def];
  if (op.kind == OpKind::kNeg) return sizes.of(op.operands[0]).divisor;
  if (op.kind == OpKind::kSub && constant_integer(g_, op.operands[0]) == 0) return sizes.of(op.operands[1]).divisor;
  return 1;
}

}  // namespace fusebox
