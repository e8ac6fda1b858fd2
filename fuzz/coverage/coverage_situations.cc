// The classes of situations that take several ops or steps (focus_situations.h).
#include <algorithm>
#include <map>

#include "fuzz/coverage/coverage_classes.h"
#include "ir/domain/domain.h"
#include "ir/scalar/numeric.h"
#include "passes/schedule/apply_steps.h"
#include "replay/data/input.h"

namespace fusebox::fuzz {
namespace {

enum : size_t { kHigherClass, kEqualScalars, kNear, kOtherDtype, kOddPower, kShared, kLayout, kSomeOfBlock, kWarps };

int class_of(Dtype d) { return is_boolean(d) ? 0 : is_integer(d) ? 1 : is_floating(d) ? 2 : 3; }

void add_scalar_classes(const Graph& g, std::vector<size_t>& classes) {
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (!demands(op.kind, kPointwise) || op.results.empty()) continue;
    const ValueId result = op.results[0];
    int tensors = -1, scalars = -1;
    for (ValueId v : op.operands)
      if (v && !is_storage_only(g[v].dtype)) {
        int& highest = g.is_tensor(v) ? tensors : scalars;
        highest = std::max(highest, class_of(g[v].dtype));
      }
    if (tensors >= 0 && scalars > tensors) classes.push_back(kHigherClass);
    if (g.is_tensor(result)) continue;
    const bool is_pair = op.operands.size() == 2 && op.operands[0] && op.operands[0] == op.operands[1];
    if (is_pair) classes.push_back(kEqualScalars);
    const Dtype from = op.operands.empty() || !op.operands[0] ? Dtype::kIndex : g[op.operands[0]].dtype;
    if (op.kind == OpKind::kCast && g[result].dtype == Dtype::kIndex && from != Dtype::kIndex && from != Dtype::kInt64)
      classes.push_back(kOtherDtype);
  }
  // Complex constants that differ in one part.
  std::map<std::pair<Dtype, uint64_t>, uint64_t> high;
  for (const Value& v : g.values) {
    if (!v.constant || !is_complex(v.dtype)) continue;
    const auto [at, is_new] = high.try_emplace({v.dtype, v.constant->low}, v.constant->high);
    if (!is_new && at->second != v.constant->high) classes.push_back(kNear);
  }
}

// True if the op raises -1 to a negative odd power. Looks only at operands that are inputs without gaps.
bool has_odd_power(const Case& c, const Op& op) {
  const Graph& g = c.fusion();
  std::vector<Argument> read;
  for (ValueId v : op.operands)
    for (const InputSpec& s : c.inputs().specs)
      if (!s.is_scalar && s.name == g[v].name && s.strides.empty()) read.push_back(make_argument(s, 1));
  if (read.size() != 2 || read[0].tensor.shape != read[1].tensor.shape) return false;
  const TensorData &x = read[0].tensor, &y = read[1].tensor;
  for (int64_t i = 0; i < element_count(x.shape); ++i) {
    const int64_t base = to_int64(x.dtype, load_element(x, x.offset + i));
    const int64_t power = to_int64(y.dtype, load_element(y, y.offset + i));
    if (base == -1 && power < 0 && power % 2 != 0) return true;
  }
  return false;
}

void add_reduction_classes(const Case& c, const Graph& scheduled, std::vector<size_t>& classes) {
  for (OpId id : scheduled[Graph::body()].ops) {
    if (!demands(scheduled[id].kind, kReduction)) continue;
    std::map<ParallelType, DomainId> reduced, kept;
    for (DomainId d : loop_of(scheduled.tensor_of(scheduled[id].results[0])))
      if (is_block(scheduled[d].parallel))
        (scheduled[d].iter_type == IterType::kReduction ? reduced : kept)[scheduled[d].parallel] = d;
    if (reduced.empty() || kept.empty()) continue;
    classes.push_back(kSomeOfBlock);
    if (!reduced.contains(ParallelType::kBlockX) || reduced.size() < 2) continue;
    const Bindings sizes = rebind(c.fusion(), sizes_of(c.fusion(), c.inputs()), scheduled);
    int64_t threads = 1;
    for (const auto& [type, d] : reduced) threads *= evaluate_extent(scheduled, d, sizes).value_or(1);
    const int64_t x = evaluate_extent(scheduled, reduced.at(ParallelType::kBlockX), sizes).value_or(1);
    if (threads % 32 == 0 && x % 32 != 0) classes.push_back(kWarps);
  }
}

bool is_made_in_unrolled_loop(const Graph& g, const Tensor& t) {
  if (t.memory != MemoryType::kShared || !t.inline_at) return false;
  const auto& loop = loop_of(t);
  const size_t end = std::min(position_in(loop, t.inline_at) + 1, loop.size());
  const auto is_unrolled = [&](DomainId d) {
    return g[d].parallel == ParallelType::kUnroll || g[d].parallel == ParallelType::kUnswitch;
  };
  const auto is_spread = [&](DomainId d) { return is_block(g[d].parallel); };
  return std::any_of(loop.begin(), loop.begin() + static_cast<std::ptrdiff_t>(end), is_unrolled) &&
         std::any_of(loop.begin() + static_cast<std::ptrdiff_t>(end), loop.end(), is_spread);
}

bool is_read_two_later(const Segmentation& s) {
  for (size_t i = 0; i < s.segments.size(); ++i)
    for (const Crossing& out : s.segments[i].outputs)
      if (!out.allocation_order.empty())
        for (size_t later = i + 2; later < s.segments.size(); ++later)
          for (const Crossing& in : s.segments[later].inputs)
            if (in.value == out.value) return true;
  return false;
}

}  // namespace

std::vector<size_t> situation_classes(const Case& c) {
  std::vector<size_t> classes;
  const Graph& g = c.fusion();
  add_scalar_classes(g, classes);
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    const bool is_power =
        op.kind == OpKind::kPow && is_integer(g[op.operands[0]].dtype) && is_signed(g[op.operands[0]].dtype);
    if (is_power && g.is_tensor(op.operands[0]) && g.is_tensor(op.operands[1]) && has_odd_power(c, op))
      classes.push_back(kOddPower);
  }
  if (!c.compiled) return classes;
  for (const Graph& scheduled : c.compiled->scheduled) {
    add_reduction_classes(c, scheduled, classes);
    for (const Tensor& t : scheduled.tensors)
      if (is_made_in_unrolled_loop(scheduled, t)) classes.push_back(kShared);
  }
  if (is_read_two_later(c.compiled->segmentation)) classes.push_back(kLayout);
  return classes;
}

}  // namespace fusebox::fuzz
