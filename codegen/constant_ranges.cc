#include "codegen/constant_ranges.h"

#include <algorithm>

namespace fusebox {

ConstantRanges::ConstantRanges(const Graph& kernel) : g_(kernel) {
  for (const Op& op : kernel.ops) {
    if (op.kind != OpKind::kFor) continue;
    const auto begin = constant_integer(kernel, op.operands[0]), end = constant_integer(kernel, op.operands[1]),
               step = constant_integer(kernel, op.operands[2]);
    if (begin && end && step && *step > 0 && *begin < *end)
      loops_[kernel[op.regions[0]].index] = {*begin, *begin + (*end - 1 - *begin) / *step * *step};
  }
}

std::optional<ConstantRange> ConstantRanges::of(ValueId index) const {
  int budget = 64;
  return find(index, budget);
}

std::optional<ConstantRange> ConstantRanges::find(ValueId v, int& budget) const {
  if (const auto constant = constant_integer(g_, v)) return ConstantRange{*constant, *constant};
  if (const auto it = loops_.find(v); it != loops_.end()) return it->second;
  if (!g_[v].def || --budget < 0) return std::nullopt;
  const Op& op = g_[g_[v].def];
  if (op.kind == OpKind::kFloorMod) {
    const auto n = constant_integer(g_, op.operands[1]);
    return n && *n > 0 ? std::optional(ConstantRange{0, *n - 1}) : std::nullopt;
  }
  if (op.kind != OpKind::kAdd && op.kind != OpKind::kSub && op.kind != OpKind::kMul) return std::nullopt;
  const auto a = find(op.operands[0], budget), b = a ? find(op.operands[1], budget) : std::nullopt;
  if (!b) return std::nullopt;
  ConstantRange result;
  if (op.kind == OpKind::kMul) {
    int64_t ends[4];
    if (__builtin_mul_overflow(a->least, b->least, &ends[0]) || __builtin_mul_overflow(a->least, b->most, &ends[1]) ||
        __builtin_mul_overflow(a->most, b->least, &ends[2]) || __builtin_mul_overflow(a->most, b->most, &ends[3]))
      return std::nullopt;
    result = {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
  } else if (op.kind == OpKind::kAdd) {
    if (__builtin_add_overflow(a->least, b->least, &result.least) ||
        __builtin_add_overflow(a->most, b->most, &result.most))
      return std::nullopt;
  } else if (__builtin_sub_overflow(a->least, b->most, &result.least) ||
             __builtin_sub_overflow(a->most, b->least, &result.most)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace fusebox
