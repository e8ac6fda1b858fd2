#include "passes/index_range.h"

#include <algorithm>
#include <array>
#include <optional>

namespace fusebox {
namespace {

using Wide = __int128;

struct Range {
  Wide low = 0, high = 0;
};

Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

class KernelRanges {
 public:
  KernelRanges(const Graph& kernel, const std::array<std::optional<int64_t>, 6>& launch) : g_(kernel), launch_(launch) {
    ranges_.resize(kernel.values.size());
    for (size_t i = 0; i < kernel.values.size(); ++i)
      if (const auto constant = constant_integer(kernel, ValueId(i))) ranges_[i] = Range{*constant, *constant};
  }

  void set(ValueId v, int64_t value) { ranges_[v.index] = Range{value, value}; }

  // False at the first index that leaves 32 bits.
  bool walk(RegionId region) {
    for (OpId id : g_[region].ops) {
      const Op& op = g_[id];
      if (op.kind == OpKind::kFor) {
        const auto start = of(op.operands[0]), stop = of(op.operands[1]);
        if (start && stop)
          ranges_[g_[op.regions[0]].index.index] = Range{start->low, std::max(start->low, stop->high - 1)};
      }
      for (ValueId v : op.results) {
        if (g_[v].dtype != Dtype::kIndex) continue;
        const auto r = range(op);
        ranges_[v.index] = r;
        if (r && (r->low < INT32_MIN || r->high > INT32_MAX)) return false;
      }
      for (RegionId inner : op.regions)
        if (!walk(inner)) return false;
    }
    return true;
  }

 private:
  std::optional<Range> of(ValueId v) const { return v ? ranges_[v.index] : std::nullopt; }

  std::optional<Range> range(const Op& op) const {
    if (op.kind == OpKind::kThreadIndex || op.kind == OpKind::kThreadCount) {
      const auto p = op.attrs.enumerator<ParallelType>(AttrKey::kParallel);
      const auto count = launch_[static_cast<size_t>(p) - static_cast<size_t>(ParallelType::kGridX)];
      if (!count) return std::nullopt;
      return op.kind == OpKind::kThreadCount ? Range{*count, *count} : Range{0, std::max<int64_t>(*count - 1, 0)};
    }
    if (op.operands.empty() || op.operands.size() > 3) return std::nullopt;
    if (op.kind == OpKind::kWhere) return join(of(op.operands[1]), of(op.operands[2]));
    const auto a = of(op.operands[0]), b = op.operands.size() > 1 ? of(op.operands[1]) : Range{};
    if (!a || !b) return std::nullopt;
    const Wide largest = std::max(a->high, -a->low);
    switch (op.kind) {
      case OpKind::kCast:
        return a;
      case OpKind::kNeg:
        return Range{-a->high, -a->low};
      case OpKind::kAdd:
        return Range{a->low + b->low, a->high + b->high};
      case OpKind::kSub:
        return Range{a->low - b->high, a->high - b->low};
      case OpKind::kMul: {
        const auto [low, high] = std::minmax({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
        return Range{low, high};
      }
      case OpKind::kFloorDiv:
        if (b->low > 0)
          return Range{a->low < 0 ? floor_div(a->low, b->low) : a->low / b->high,
                       a->high < 0 ? floor_div(a->high, b->high) : a->high / b->low};
        return Range{-largest - 1, largest + 1};
      case OpKind::kCeilDiv:
        return Range{-largest - 1, largest + 1};
      case OpKind::kFloorMod:
        if (a->low >= 0 && a->high < b->low) return a;
        return Range{0, std::max({b->high - 1, -b->low - 1, Wide{0}})};
      case OpKind::kMinimum:
        return Range{std::min(a->low, b->low), std::min(a->high, b->high)};
      case OpKind::kMaximum:
        return Range{std::max(a->low, b->low), std::max(a->high, b->high)};
      case OpKind::kBitwiseXor: {
        if (a->low < 0 || b->low < 0) return std::nullopt;
        Wide power = 1;
        while (power <= a->high || power <= b->high) power *= 2;
        return Range{0, power - 1};
      }
      default:
        return std::nullopt;
    }
  }

  static std::optional<Range> join(const std::optional<Range>& a, const std::optional<Range>& b) {
    if (!a || !b) return std::nullopt;
    return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
  }

  const Graph& g_;
  const std::array<std::optional<int64_t>, 6>& launch_;
  std::vector<std::optional<Range>> ranges_;
};

}  // namespace

bool fits_in_32_bits(const Graph& kernel, const Graph& launch, const Bindings& bindings, const InputStrides& strides) {
  Bindings known = bindings;
  const Op* call = nullptr;
  for (OpId id : launch[Graph::body()].ops) {
    const Op& op = launch[id];
    if (op.kind == OpKind::kLaunch) call = &op;
    if (op.kind != OpKind::kTensorStride) continue;
    const auto it = strides.find(launch[op.operands[0]].name);
    const auto axis = static_cast<size_t>(op.attrs.integer(AttrKey::kAxis));
    if (it == strides.end() || axis >= it->second.size()) return false;
    known[op.results[0].index] = ConstantBits{static_cast<uint64_t>(it->second[axis]), 0};
  }
  if (call == nullptr) return true;
  constexpr size_t kFirstArgument = 7;  // after the dimensions and the bytes of shared memory
  std::array<std::optional<int64_t>, 6> dimensions;
  for (size_t i = 0; i < dimensions.size(); ++i) dimensions[i] = evaluate_integer(launch, call->operands[i], known);
  KernelRanges ranges(kernel, dimensions);
  const auto parameters = inputs(kernel);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (kernel[parameters[i]].dtype != Dtype::kIndex || kernel.is_tensor(parameters[i])) continue;
    const auto value = evaluate_integer(launch, call->operands[kFirstArgument + i], known);
    if (!value || *value < INT32_MIN || *value > INT32_MAX) return false;
    ranges.set(parameters[i], *value);
  }
  return ranges.walk(Graph::body());
}

}  // namespace fusebox
